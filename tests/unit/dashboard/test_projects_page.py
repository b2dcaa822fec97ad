from dashboard.pages.projects_page import _urgency
from storage.read.counts.project_calls import ProjectCounts


def test_projects_with_escalating_issues_come_first_then_those_with_new_ones() -> None:
    escalating, new, busy = ProjectCounts(1, new=0, escalating=1), ProjectCounts(2, new=3), ProjectCounts(9)
    assert sorted([busy, new, escalating], key=_urgency, reverse=True) == [escalating, new, busy]
