import random

from hypothesis import given
from hypothesis import strategies as st

from processors.grouper.dedup_log import KEY_BYTES
from processors.grouper.id_index import IdIndex, id_keys, sorted_runs, split
from tests.unit.processors.made import HOUR, START, event_id


def keys(numbers: list[int], spread: int = 0) -> bytes:
    ids = [event_id(n, START + n % (spread or 1) * HOUR) for n in numbers]
    return id_keys([1] * len(ids), ids)


def test_equal_ids_of_two_projects_have_different_keys() -> None:
    one, other = split(id_keys([1, 2], [event_id(5), event_id(5)]))
    assert one != other


def test_a_key_begins_with_the_hour_of_its_uuid() -> None:
    first, second = split(id_keys([1, 1], [event_id(5, START), event_id(6, START + HOUR)]))
    assert (second[0] - first[0]) % 256 == 1


@given(st.lists(st.integers(0, 300), max_size=400), st.integers(1, 20), st.sampled_from([1, 7, 40, 10_000]))
def test_the_index_answers_as_a_set_does(numbers: list[int], spread: int, limit: int) -> None:
    index, known = IdIndex(limit), set[int]()
    for start in range(0, len(numbers), 13):
        some = numbers[start : start + 13]
        expected = []
        for position, number in enumerate(some):
            if number not in known:
                known.add(number)
                expected.append(position)
        assert index.new(0, keys(some, spread)) == expected
    assert len(index) == len(known)


def test_ids_of_a_forgotten_day_are_new_again() -> None:
    index = IdIndex(limit=4)
    index.new(10, keys([1, 2, 3, 4, 5, 6]))
    index.new(11, keys([7]))
    index.forget_before(11)
    assert index.new(11, keys([1, 6, 7])) == [0, 1]


def test_a_discarded_key_is_new_again_wherever_it_is() -> None:
    for limit in (2, 1000):
        index = IdIndex(limit)
        joined = keys([1, 2, 3])
        index.new(0, joined)
        index.discard(split(joined)[1])
        assert index.new(0, joined) == [1]


def test_a_restored_index_knows_its_ids() -> None:
    index = IdIndex()
    numbers = random.Random(3).sample(range(10**6), 5000)
    joined = keys(numbers, 300)
    index.restore(9, joined + joined[: 1000 * KEY_BYTES])
    assert index.new(9, joined) == []
    assert len(index) == 5000


def test_high_halves_that_differ_in_their_lowest_bits_are_found() -> None:
    numbers = random.Random(3).sample(range(20_000), 10_000)
    all_keys = {n: n.to_bytes(8, "big") + bytes(8) for n in range(20_000)}
    index = IdIndex()
    index.restore(0, b"".join(all_keys[n] for n in numbers))
    assert all(index.known(b"".join(all_keys[n] for n in numbers)))
    others = sorted(all_keys.keys() - set(numbers))
    assert not any(index.known(b"".join(all_keys[n] for n in others)))


def test_equal_high_halves_are_told_apart() -> None:
    index = IdIndex()
    high = bytes(8)
    index.restore(0, high + b"%08d" % 1 + high + b"%08d" % 2)
    assert index.new(0, high + b"%08d" % 2 + high + b"%08d" % 3) == [1]


def test_unmerged_runs_are_searched_and_merged_later() -> None:
    numbers = random.Random(3).sample(range(10**6), 6000)
    index = IdIndex(1000)
    for start in range(0, 3000, 500):
        index.put(9, sorted_runs(keys(numbers[start : start + 500], 300)))
    assert index.new(9, keys(numbers[:3000], 300)) == []
    for start in range(3000, 6000, 1000):
        assert len(index.new(9, keys(numbers[start : start + 1000], 300))) == 1000
    assert index.new(9, keys(numbers, 300)) == []
    assert len(index) == 6000
