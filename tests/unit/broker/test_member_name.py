"""Two processes of one name."""

from broker.member_name import MemberName


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def joined(ids: str, pause: float) -> tuple[MemberName, Clock]:
    clock = Clock()
    name = MemberName("writers", "NAME=0", 10.0, clock)
    for each in ids:
        name.joined(each)
        clock.now += pause
    return name, clock


def test_a_name_that_is_taken_again_and_again_within_a_session_is_used_twice() -> None:
    name, clock = joined("abc", 1.0)
    assert not name.part().ok
    assert "another process is in the group writers with NAME=0 too" in name.part().detail
    clock.now += 10.0
    assert name.part().ok


def test_sessions_that_expire_and_rebalances_are_not_taken_for_it() -> None:
    assert joined("abcdef", 10.0)[0].part().ok
    assert joined("aaaaaa", 0.1)[0].part().ok


def test_a_client_that_is_replaced_again_and_again_has_its_name_alone() -> None:
    name = joined("ab", 1.0)[0]
    for member_id in "cde":
        name.begin()
        name.joined(member_id)
    assert name.part().ok
