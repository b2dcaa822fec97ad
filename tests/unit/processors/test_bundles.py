from msgspec.structs import replace

from processors.bundles import MAX_BYTES, MAX_TOGETHER, bundles
from schemas.ids import issue_id
from schemas.issues import SourceIncrements, decode_delta
from tests.unit.processors.test_fold import increment

PARTITIONS = 3


def test_increments_go_to_the_partition_of_their_issue_and_name_their_source() -> None:
    made = [replace(increment(), fingerprint=n) for n in range(40)]
    sources = [SourceIncrements(1, 7, made[:20]), SourceIncrements(1, 8, made[20:])]
    found = {}
    for target, values in bundles(sources, PARTITIONS).items():
        for value in values:
            for source in decode_delta(value).increments:
                for one in source.increments:
                    assert issue_id(one.project, one.fingerprint) % PARTITIONS == target
                    found[one.fingerprint] = source.offset
    assert found == {n: 7 if n < 20 else 8 for n in range(40)}


def test_a_take_is_one_record_for_each_target() -> None:
    sources = [SourceIncrements(0, offset, [increment()]) for offset in range(50)]
    [values] = bundles(sources, PARTITIONS).values()
    assert len(values) == 1
    assert [s.offset for s in decode_delta(values[0]).increments] == list(range(50))


def test_values_stay_bounded() -> None:
    big = replace(increment(), message="x" * 1000)
    sources = [SourceIncrements(0, 1, [replace(big, fingerprint=n) for n in range(5000)])]
    values = [value for found in bundles(sources, 1).values() for value in found]
    assert max(map(len, values)) < MAX_BYTES + MAX_TOGETHER * 2000
    assert sum(len(s.increments) for v in values for s in decode_delta(v).increments) == 5000
