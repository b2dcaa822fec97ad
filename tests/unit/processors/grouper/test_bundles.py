import msgspec
import pytest
import zstandard
from msgspec import Raw
from msgspec.structs import replace

from processors.grouper.record_counts import MAX_BYTES, MAX_TOGETHER, bundles
from schemas.ids import issue_id
from schemas.increments import (
    Description,
    SourceIncrements,
    decode_bundle,
    encode_description,
    is_bundle,
)
from schemas.issues import DeltaRecord, encode_json
from tests.unit.processors.aggregator.test_fold import increment

PARTITIONS = 3


def test_increments_go_to_the_partition_of_their_issue_and_name_their_source() -> None:
    made = [replace(increment(), fingerprint=n, issue=issue_id(1, n)) for n in range(40)]
    sources = [SourceIncrements(1, 7, made[:20]), SourceIncrements(1, 8, made[20:])]
    found = {}
    for target, values in bundles(sources, PARTITIONS).items():
        for value in values:
            for source in decode_bundle(value):
                for one in source.increments:
                    assert issue_id(one.project, one.fingerprint) % PARTITIONS == target
                    found[one.fingerprint] = source.offset
    assert found == {n: 7 if n < 20 else 8 for n in range(40)}


def test_a_batch_is_one_record_for_each_target() -> None:
    sources = [SourceIncrements(0, offset, [increment()]) for offset in range(50)]
    [values] = bundles(sources, PARTITIONS).values()
    assert len(values) == 1
    assert [s.offset for s in decode_bundle(values[0])] == list(range(50))


def test_values_stay_bounded() -> None:
    description = Description("E", "x" * 1000, "f", "v1", "stack", ("p",))
    big = replace(increment(), description=Raw(encode_description(description)))
    sources = [SourceIncrements(0, 1, [replace(big, fingerprint=n) for n in range(5000)])]
    values = [value for found in bundles(sources, 1).values() for value in found]
    assert max(len(zstandard.decompress(value)) for value in values) < MAX_BYTES + MAX_TOGETHER * 2000
    assert len(values) > 1
    assert sum(len(s.increments) for v in values for s in decode_bundle(v)) == 5000


def test_commands_are_told_apart_from_increments_by_their_first_byte() -> None:
    [[value]] = bundles([SourceIncrements(0, 1, [increment()])], 1).values()
    assert is_bundle(value)
    assert not is_bundle(encode_json(DeltaRecord()))


def test_damaged_increments_are_declared_so() -> None:
    source = SourceIncrements(0, 1, [increment()])
    [[value]] = bundles([source], 1).values()
    assert decode_bundle(value) == [source]
    for damaged in (value[:-1], b"[]", b"", b"no frame"):
        assert is_bundle(damaged)
        with pytest.raises(msgspec.DecodeError):
            decode_bundle(damaged)
