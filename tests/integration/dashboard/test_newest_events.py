"""The newest events of issues, complete."""

import msgspec
import pytest

from storage.reader.issue_list import ListIssues
from storage.reader.newest_events import IssueEvent, ListNewestEvents
from tests.integration.dashboard.stored_site import StoredSite
from tests.unit.dashboard.sample import SHOWCASE, issue_of

pytestmark = pytest.mark.usefixtures("sample_stored")


async def test_the_newest_event_of_each_issue_is_read_and_wanted_ones_come_first(site: StoredSite) -> None:
    project, wanted = int(site.project.id), int(issue_of(SHOWCASE), 16)
    page = await site.reader.read(ListIssues(project, limit=500))
    found = await site.reader.read(ListNewestEvents(project, "1", [wanted], ()))
    assert {f"{one.issue:016x}" for one in found} == {issue.id for issue in page.issues}
    assert found[0].issue == wanted
    types = {issue.id: issue.error_type for issue in page.issues}
    for one in found:
        assert one.event is not None
        assert msgspec.json.decode(one.event)["error"]["type"] == types[f"{one.issue:016x}"]
    assert {one.whole for one in found} == {one.issue for one in found}
    known = [one.issue for one in found[1:]]
    rest = await site.reader.read(ListNewestEvents(project, "1", [wanted], known))
    assert [one.issue for one in rest if one.event is not None] == [wanted]
    # Of another version, only the wanted issue itself is told.
    assert await site.reader.read(ListNewestEvents(project, "v2", [wanted])) == [
        IssueEvent(wanted, wanted, None)
    ]
