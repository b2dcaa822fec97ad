from tests.eventually import eventually
from tests.integration.storage.grouped import Stage, counts, ended, exactly, whole


async def test_each_event_is_in_every_table_once_although_records_come_twice(stage: Stage) -> None:
    await stage.produce(20)
    writer = stage.writer()
    with ended(writer):
        assert await whole(stage) == exactly(stage.total)
        await stage.produce(5)
        assert await whole(stage) == exactly(stage.total)
        await eventually(lambda: writer.get("readyz")[0] == 200)
        assert "svc_writer_rows_total" in writer.get("metrics")[1]
        assert writer.stop() == 0
    client = stage.client()
    try:
        assert counts(client) == exactly(stage.total)
    finally:
        client.close()
