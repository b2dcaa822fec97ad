from hypothesis import given
from hypothesis import strategies as st

from storage.write.flush_policy import BUSY_ROWS, FlushPolicy, LastFlush

POLICY = FlushPolicy(block_rows=1000, block_bytes=10_000, quiet_seconds=0.2, wait_seconds=1.0)


def test_a_quiet_writer_waits_shortly_after_the_first_row() -> None:
    assert POLICY.remaining(1, 1, 0.0, LastFlush(0.01, 1)) == 0.2
    assert POLICY.remaining(1, 1, 0.2, LastFlush(0.01, 1)) == 0.0


def test_slow_inserts_make_larger_blocks_up_to_the_longest_wait() -> None:
    assert POLICY.remaining(1, 1, 0.0, LastFlush(0.2, 1)) == 0.2 * 2
    assert POLICY.remaining(1, 1, 0.0, LastFlush(9.0, 1)) == 1.0


def test_under_load_there_is_one_insert_in_the_longest_wait() -> None:
    assert POLICY.remaining(1, 1, 0.0, LastFlush(0.01, BUSY_ROWS)) == 1.0
    assert POLICY.remaining(1, 1, 0.0, LastFlush(0.01, BUSY_ROWS - 1)) == 0.2


def test_after_a_rest_the_load_before_it_is_forgotten() -> None:
    busy = LastFlush(0.5, BUSY_ROWS, at=100.0)
    assert POLICY.recent(busy, 100.9) == busy
    assert POLICY.remaining(1, 1, 0.0, POLICY.recent(busy, 101.0)) == 0.2


@given(
    st.integers(0, 2000),
    st.integers(0, 20_000),
    st.floats(0, 5),
    st.builds(LastFlush, st.floats(0, 5), st.integers(0)),
)
def test_a_full_block_is_due_and_none_waits_longer_than_the_setting(
    rows: int, size: int, age: float, last: LastFlush
) -> None:
    remaining = POLICY.remaining(rows, size, age, last)
    assert 0 <= remaining <= max(0.0, 1.0 - age)
    if POLICY.full(rows, size):
        assert remaining == 0
