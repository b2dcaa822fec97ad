from msgspec.structs import replace

from storage.exactly_once.block_tokens import ServerMark, ServerState, decode_mark, encode_mark, is_reliable

MARK = ServerMark(0xC0FFEE, (10, 20), 3)
WINDOWS = (8, 8)


def state(*blocks: int, life: int = MARK.life, pauses: int = MARK.pauses) -> ServerState:
    return ServerState(ServerMark(life, blocks, pauses), WINDOWS)


def test_a_token_is_unreliable_when_half_a_window_may_be_full() -> None:
    assert is_reliable(MARK, state(10, 20))
    assert is_reliable(MARK, state(13, 23))
    assert not is_reliable(MARK, state(10, 24))


def test_a_token_is_unreliable_where_less_is_counted_than_before_or_the_server_was_started() -> None:
    assert not is_reliable(MARK, state(9, 20))
    assert not is_reliable(MARK, state(10, 20, life=1))


def test_a_table_that_remembers_nothing_has_forgotten() -> None:
    assert not is_reliable(MARK, replace(state(10, 20), windows=(8, 0)))


def test_a_token_is_unreliable_after_a_pause_or_in_one() -> None:
    assert not is_reliable(MARK, state(10, 20, pauses=4))
    assert not is_reliable(MARK, state(10, 20, pauses=0))
    assert not is_reliable(replace(MARK, pauses=0), state(10, 20, pauses=0))


def test_a_mark_survives_its_text() -> None:
    assert decode_mark(encode_mark(MARK)) == MARK
    assert " " not in encode_mark(MARK)
