"""The sample of past events on which grouping rules are tested."""

from storage.read.events.event_calls import SampleEvents
from storage.read.execute import Executor, Limits
from storage.read.reader import Reader
from tests.integration.dashboard.api import Api
from tests.integration.dashboard.history import NOW_MS


async def test_a_damaged_event_is_left_out_of_the_sample(api: Api) -> None:
    found = await api.post(f"{api.project}/grouping-rules:test", {"rules": []})
    assert found["sampled"] == len(api.history.events) - 1


async def test_a_sample_is_bounded_in_bytes(filled_url: str, api: Api) -> None:
    reader = Reader(Executor([filled_url], Limits()), lambda: NOW_MS)
    whole = await reader.read(SampleEvents(api.history.project, limit=160))
    sizes = [len(bytes(one.event)) for one in whole]
    bounded = SampleEvents(api.history.project, limit=160, max_bytes=sum(sizes[:7]) + 1)
    assert await reader.read(bounded) == whole[:7]
    await reader.close()


async def test_a_group_without_events_is_told_apart_from_existing_issues(api: Api) -> None:
    rule = {"name": "one", "match": "größe -environment:prod", "fingerprint": ["one", "{{ default }}"]}
    found = await api.post(f"{api.project}/grouping-rules:test", {"rules": [rule]})
    assert {one["after"]["isKnown"] for one in found["examples"] if one["after"]} == {False}
