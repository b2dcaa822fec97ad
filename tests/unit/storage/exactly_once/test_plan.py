from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from storage.exactly_once.block_plan import (
    MAX_RANGES,
    BlockPlan,
    NoBlock,
    RecordRange,
    decode_plan,
    encode_plan,
)
from storage.exactly_once.block_tokens import ServerMark
from storage.exactly_once.server_state import TABLES

offsets = st.integers(0, 10**12)
ranges = st.builds(
    lambda partition, first, more, seen, again: RecordRange(partition, first, first + more, seen, again),
    st.integers(0, 255),
    offsets,
    st.integers(0, 10**6),
    st.integers(-1, 10**12),
    st.integers(-1, 10**12),
)
marks = st.builds(
    lambda life, blocks, pauses: ServerMark(life, tuple(blocks), pauses),
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(0, 2**36), min_size=len(TABLES), max_size=len(TABLES)),
    st.integers(0, 2**36),
)
plans = st.builds(
    lambda found, mark, since: BlockPlan(tuple(sorted(found)), mark, since),
    st.lists(ranges, min_size=1, max_size=MAX_RANGES, unique_by=lambda r: r.partition),
    marks,
    st.integers(-1, 2**42),
)


@given(st.one_of(plans, st.builds(NoBlock, st.integers(-1, 2**60), st.integers(-1, 2**60))))
def test_metadata_round_trips_and_fits_into_a_commit(state: BlockPlan | NoBlock) -> None:
    assert decode_plan(encode_plan(state)) == state
    assert len(encode_plan(state)) < 4096


@given(st.text())
def test_text_of_another_origin_says_that_nothing_is_known(text: str) -> None:
    assert decode_plan(f"x{text}") == NoBlock()
    assert isinstance(decode_plan(text), BlockPlan | NoBlock)


@given(plans, plans)
def test_tokens_are_equal_only_for_equal_records_in_one_run_of_the_server(
    one: BlockPlan, other: BlockPlan
) -> None:
    def insert(plan: BlockPlan) -> tuple[int, int, list[tuple[int, int, int]]]:
        return plan.mark.life, plan.since, [(r.partition, r.first, r.last) for r in plan.ranges]

    assert (one.token("grouped") == other.token("grouped")) == (insert(one) == insert(other))
    # A server that was killed may remember a token without its rows.
    restarted = structs.replace(one, mark=structs.replace(one.mark, life=one.mark.life + 1))
    assert restarted.token("grouped") != one.token("grouped")


@given(plans)
def test_positions_that_may_be_stored_already_are_known_until_passed(plan: BlockPlan) -> None:
    ends = plan.ends({r.partition: 5 for r in plan.ranges})
    for span in plan.ranges:
        offset, done = ends[span.partition]
        assert offset == span.last + 1
        assert done == NoBlock(5, span.verify_until if span.verify_until > 6 else -1)
