from msgspec.structs import replace

from storage.writer.tokens import ServerMark, ServerState, decode_mark, encode_mark, is_doubtful, is_forgotten

MARK = ServerMark(0xC0FFEE, (10, 20), 3)
WINDOWS = (8, 8)


def state(*blocks: int, life: int = MARK.life, pauses: int = MARK.pauses) -> ServerState:
    return ServerState(ServerMark(life, blocks, pauses), WINDOWS)


def test_a_token_is_forgotten_when_half_a_window_may_be_full() -> None:
    assert not is_forgotten(MARK, state(10, 20))
    assert not is_forgotten(MARK, state(13, 23))
    assert is_forgotten(MARK, state(10, 24))


def test_a_token_is_forgotten_where_less_is_counted_than_before_or_the_server_was_started() -> None:
    assert is_forgotten(MARK, state(9, 20))
    assert is_forgotten(MARK, state(10, 20, life=1))
    assert is_forgotten(None, state(10, 20))


def test_a_table_that_remembers_nothing_has_forgotten() -> None:
    assert is_forgotten(MARK, replace(state(10, 20), windows=(8, 0)))


def test_a_repeated_block_is_doubtful_after_a_start_or_a_pause() -> None:
    assert not is_doubtful(MARK, state(900, 900))
    assert is_doubtful(MARK, state(10, 20, life=1))
    assert is_doubtful(MARK, state(10, 20, pauses=4))
    assert is_doubtful(MARK, state(10, 20, pauses=0))
    assert is_doubtful(replace(MARK, pauses=0), state(10, 20, pauses=0))
    assert is_doubtful(None, state(10, 20))


def test_a_mark_survives_its_text() -> None:
    assert decode_mark(encode_mark(MARK)) == MARK
    assert " " not in encode_mark(MARK)
