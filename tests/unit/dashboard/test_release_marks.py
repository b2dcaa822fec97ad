"""Marks of a chart for the first events of releases, and how often they are read."""

import asyncio

import pytest

from dashboard.kept_reads import KeptReads, newest_releases
from dashboard.view.charts import MAX_OF_KIND, Mark, events_chart
from dashboard.view.release_marks import newest_like, release_marks, suggested
from schemas.read_api import Point, Release, Releases, Series
from schemas.times import DAY_MS, iso
from storage.errors import StorageUnavailable
from storage.read.counts.count_calls import ListReleases
from storage.read.execute import Executor, Limits
from storage.read.reader import A, ReadCall, Reader
from tests.eventually import eventually
from tests.unit.dashboard.site import NOWHERE

START = 1_760_054_400_000


def release(name: str, day: int) -> Release:
    at = iso(START + day * DAY_MS + 1)
    return Release(release=name, first_seen=at, last_seen=at, events=1, new_issues=0, regressions=0)


def series(days: int) -> Series:
    return Series([Point(iso(START + day * DAY_MS), 1, 1) for day in range(days)], "day")


def test_releases_are_marked_on_the_day_of_their_first_event() -> None:
    releases = [release("shop@2+1", 3), release("shop@1+1", 1), release("shop@0+1", -1)]
    figure = events_chart(series(5), release_marks(releases))
    assert figure.marks == ("Oct 11: shop@1+1 first seen", "Oct 13: shop@2+1 first seen")
    assert figure.drawing.count('class="mark release"') == 2


def test_releases_of_one_day_are_one_mark() -> None:
    releases = [release("shop@3+1", 2), release("shop@2+1", 1), release("shop@1+1", 1)]
    figure = events_chart(series(3), release_marks(releases))
    assert figure.marks == ("Oct 11: shop@2+1, shop@1+1 first seen", "Oct 12: shop@3+1 first seen")
    assert figure.drawing.count('class="mark release"') == 2


def test_of_many_releases_the_newest_are_marked_and_no_change_is_left_out_for_them() -> None:
    many = [release(f"shop@{day}+1", day) for day in reversed(range(12))]
    marks = [*release_marks(many), Mark(START + DAY_MS, "Resolved", "resolved")]
    found = events_chart(series(12), marks).marks
    assert found[0] == "Oct 11: Resolved"
    assert found[1:] == tuple(
        f"Oct {day + 10}: shop@{day}+1 first seen" for day in range(12 - MAX_OF_KIND, 12)
    )


@pytest.mark.parametrize(
    ("known", "like", "newest"),
    [
        (["shop@1.0.1+7", "web@9+1", "shop@2.0+1", "shop@1.0+1"], "shop@1.0+1", "shop@2.0+1"),
        (["shop@2.0+10", "shop@2.0+9"], "shop@2.0+9", "shop@2.0+10"),
        (["shop@2.0+1"], "web@1+1", "web@1+1"),
        (["latest", "nightly"], "nightly", "nightly"),
        ([], "", ""),
    ],
)
def test_the_next_release_comes_after_the_newest_version_of_the_application(
    known: list[str], like: str, newest: str
) -> None:
    assert newest_like([release(name, 9 - index) for index, name in enumerate(known)], like) == newest


def test_invisible_characters_are_not_suggested() -> None:
    assert suggested([release("shop@1+1", 1), release("shop@1\u202e+2", 2), release("", 3)]) == ["shop@1+1"]


class SlowReader(Reader):
    """Answers once it may, or raises."""

    def __init__(self) -> None:
        super().__init__(Executor([NOWHERE], Limits()))
        self.may, self.reads, self.fails = asyncio.Event(), 0, False

    async def read(self, call: ReadCall[A]) -> A:
        assert isinstance(call, ListReleases)
        self.reads += 1
        await self.may.wait()
        if self.fails:
            raise StorageUnavailable("busy")
        return Releases([release(f"shop@{self.reads}+1", 0)], None)  # type: ignore[return-value]


async def test_a_page_does_not_wait_long_for_marks_and_the_next_one_has_them() -> None:
    reader, starts = SlowReader(), KeptReads(newest_releases)
    starts.wait_seconds = 0.01
    assert await starts.of(reader, 1) == ()
    assert await starts.of(reader, 1) == ()
    reader.may.set()

    async def known() -> bool:
        return [one.release for one in await starts.of(reader, 1)] == ["shop@1+1"]

    await eventually(known)
    assert reader.reads == 1
    await starts.cancel_reads()


async def test_known_releases_are_shown_while_they_are_read_again() -> None:
    now = [0.0]
    reader, starts = SlowReader(), KeptReads(newest_releases, clock=lambda: now[0])
    reader.may.set()
    assert [one.release for one in await starts.of(reader, 1)] == ["shop@1+1"]
    now[0] = 61.0
    assert [one.release for one in await starts.of(reader, 1)] == ["shop@1+1"]

    async def renewed() -> bool:
        return [one.release for one in await starts.of(reader, 1)] == ["shop@2+1"]

    await eventually(renewed)
    await starts.cancel_reads()


async def test_without_an_answer_there_are_no_marks() -> None:
    reader, starts = SlowReader(), KeptReads(newest_releases)
    reader.fails = True
    reader.may.set()
    assert await starts.of(reader, 1) == ()
    await starts.cancel_reads()
