import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from broker.client import follow_projects, name_of, open_producer
from control.project_edits import ProjectChanges, create, update
from control.project_store import ProjectRecords, ProjectStore
from local.ports import free_port
from schemas.errors import ProjectsUnavailable
from schemas.projects import encode_project
from schemas.settings import KafkaSettings
from schemas.topics import Topic

NOW = 1_760_000_000_000


@pytest.fixture
async def settings(kafka_bootstrap: str, topic_prefix: str) -> AsyncIterator[KafkaSettings]:
    made = KafkaSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=topic_prefix)
    topic = name_of(made, Topic.PROJECTS)
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"cleanup.policy": "compact"})])
    yield made
    await admin.delete_topics([topic])
    await admin.close()


async def test_a_written_project_is_known_when_write_returns(settings: KafkaSettings) -> None:
    project = create("shop", now_ms=NOW)
    async with ProjectStore(settings) as store:
        await store.write(project)
        assert store.all() == [project]


async def test_project_asked_for_again_is_the_one_that_was_made(settings: KafkaSettings) -> None:
    async with ProjectStore(settings) as store:
        made = await store.write(create("shop", now_ms=NOW, request="k"))
    async with ProjectStore(settings) as store:
        assert await store.write(create("shop", now_ms=NOW, request="k")) == made
        assert store.all() == [made]


async def test_another_process_finds_the_written_project(settings: KafkaSettings) -> None:
    project = create("shop", now_ms=NOW)
    async with ProjectStore(settings) as store:
        await store.write(project)
    async with ProjectStore(settings) as store:
        assert store.get(project.number) == project


async def test_concurrent_edits_are_all_kept(settings: KafkaSettings) -> None:
    project = create("shop", now_ms=NOW)
    async with ProjectStore(settings) as store:
        await store.write(project)
        await asyncio.gather(
            store.edit(project.number, lambda old: update(old, ProjectChanges(name="renamed"))),
            store.edit(project.number, lambda old: update(old, ProjectChanges(rate_limit_per_minute=7))),
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
            await store.edit(project.number, lambda old, given=changes: update(old, given))  # type: ignore[misc]
    records = ProjectRecords()
    follower = follow_projects(settings, records)
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(follower.run())
        await follower.loaded.wait()
        following.cancel()
    assert records.get(project.number) == msgspec.structs.replace(project, name="second")
    assert msgspec.json.decode(records.values[project.number])["later"] == 1


async def test_edit_of_an_unknown_project_is_none(settings: KafkaSettings) -> None:
    async with ProjectStore(settings) as store:
        assert await store.edit(1, lambda old: old) is None


async def test_a_broker_that_is_unreachable_is_reported_in_time() -> None:
    unreachable = KafkaSettings(kafka_bootstrap=f"127.0.0.1:{free_port()}")
    with pytest.raises(ProjectsUnavailable):
        async with ProjectStore(unreachable, deadline_seconds=0.5):
            pass
    store = ProjectStore(unreachable, deadline_seconds=0.5)
    store.start()
    with pytest.raises(ProjectsUnavailable):
        await store.write(create("shop", now_ms=NOW))
    await store.stop()
