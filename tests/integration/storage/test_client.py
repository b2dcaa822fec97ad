"""What our client of ClickHouse sends."""

from typing import Any

import pyarrow as pa
import pytest

from storage.client import open_client, scalar

ROWS, WIDTH = 2_000, 500


def test_inserts_are_compressed(clickhouse_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client, sent = open_client(clickhouse_database_url), list[int]()
    send = client.raw_insert

    def counted(table: str, columns: Any, block: Any, *others: Any, **named: Any) -> Any:
        sent.append(len(block))
        return send(table, columns, block, *others, **named)

    monkeypatch.setattr(client, "raw_insert", counted)
    client.command("CREATE TABLE texts (text String) ENGINE = Memory")
    client.insert_arrow("texts", pa.table({"text": [str(number % 10) * WIDTH for number in range(ROWS)]}))
    assert scalar(client, "SELECT sum(length(text)) FROM texts") == ROWS * WIDTH
    assert 0 < sum(sent) < ROWS * WIDTH / 10
