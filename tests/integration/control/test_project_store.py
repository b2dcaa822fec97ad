import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from broker.client import follow_projects, name_of, open_consumer, open_producer, records_before
from control.project_edits import ProjectChanges, create, update
from control.project_store import ProjectRecords, ProjectStore
from local.ports import free_port
from schemas.change_records import Author, Change, decode_change
from schemas.errors import ProjectsUnavailable
from schemas.projects import encode_project
from schemas.settings import KafkaSettings
from schemas.topics import Topic

NOW = 1_760_000_000_000
ANN = Author("ann", "page")


@pytest.fixture
async def settings(kafka_bootstrap: str, topic_prefix: str) -> AsyncIterator[KafkaSettings]:
    made = KafkaSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=topic_prefix)
    topics = [name_of(made, topic) for topic in (Topic.PROJECTS, Topic.ISSUE_ACTIVITY)]
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(topic, 1, 1) for topic in topics])
    yield made
    await admin.delete_topics(topics)
    await admin.close()


async def test_project_asked_for_again_is_the_one_that_was_made(settings: KafkaSettings) -> None:
    async with ProjectStore(settings) as store:
        made = await store.write(create("shop", now_ms=NOW, request="k"), ANN)
    async with ProjectStore(settings) as store:
        assert await store.write(create("shop", now_ms=NOW, request="k"), ANN) == made
        assert store.all() == [made]


async def test_concurrent_edits_are_all_kept(settings: KafkaSettings) -> None:
    project = create("shop", now_ms=NOW)
    async with ProjectStore(settings) as store:
        await store.write(project, ANN)
        await asyncio.gather(
            store.edit(project.number, lambda old: update(old, ProjectChanges(name="renamed")), ANN),
            store.edit(project.number, lambda old: update(old, ProjectChanges(rate_limit_per_minute=7)), ANN),
        )
        kept = store.get(project.number)
    assert kept is not None
    assert (kept.name, kept.rate_limit_per_minute) == ("renamed", 7)


async def test_an_edit_keeps_the_fields_of_a_newer_version(settings: KafkaSettings) -> None:
    project = create("shop", now_ms=NOW)
    record = encode_project(project)[:-1] + b',"later":1}'
    async with open_producer(settings) as producer:
        await producer.send_and_wait(name_of(settings, Topic.PROJECTS), record, key=project.id.encode())
    async with ProjectStore(settings) as store:
        for name in ("first", "second"):
            changes = ProjectChanges(name=name)
            await store.edit(project.number, lambda old, given=changes: update(old, given), ANN)  # type: ignore[misc]
    records = ProjectRecords()
    follower = follow_projects(settings, records)
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(follower.run())
        await follower.loaded.wait()
        following.cancel()
    assert records.get(project.number) == msgspec.structs.replace(project, name="second")
    assert msgspec.json.decode(records.values[project.number])["later"] == 1


async def recorded(settings: KafkaSettings) -> list[Change]:
    async with open_consumer(settings, Topic.ISSUE_ACTIVITY) as consumer:
        ends = await consumer.end_offsets(consumer.assignment())
        return [decode_change(record.value or b"") async for record in records_before(consumer, ends)]


async def test_a_change_is_recorded_with_its_author_before_it_is_made(
    settings: KafkaSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = create("shop", now_ms=NOW)
    async with ProjectStore(settings) as store:
        await store.write(project, ANN)
        for _ in range(2):
            await store.edit(project.number, lambda old: update(old, ProjectChanges(retention_days=7)), ANN)
        [created, changed] = await recorded(settings)
        assert (created.kind, changed.kind) == ("projectCreated", "projectChanged")
        assert (changed.project_id, changed.by, changed.via) == (project.id, "ann", "page")
        assert (changed.before, changed.after) == ('{"retentionDays":90}', '{"retentionDays":7}')

        async def never(*_: int) -> None:
            raise TimeoutError

        monkeypatch.setattr(store._follower, "reached", never)
        with pytest.raises(ProjectsUnavailable):
            await store.edit(project.number, lambda old: update(old, ProjectChanges(name="late")), ANN)
    *_, lost, doubt = await recorded(settings)
    assert (lost.kind, doubt.kind) == ("projectChanged", "changeUnconfirmed")
    assert lost.id in doubt.after


async def test_edit_of_an_unknown_project_is_none(settings: KafkaSettings) -> None:
    async with ProjectStore(settings) as store:
        assert await store.edit(1, lambda old: old, ANN) is None


async def test_a_broker_that_is_unreachable_is_reported_in_time() -> None:
    unreachable = KafkaSettings(kafka_bootstrap=f"127.0.0.1:{free_port()}")
    with pytest.raises(ProjectsUnavailable):
        async with ProjectStore(unreachable, deadline_seconds=0.5):
            pass
    store = ProjectStore(unreachable, deadline_seconds=0.5)
    store.start()
    with pytest.raises(ProjectsUnavailable):
        await store.write(create("shop", now_ms=NOW), ANN)
    await store.stop()
