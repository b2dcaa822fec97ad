"""Speaks with ClickHouse as Grafana's data source does over HTTP: Basic authentication, its settings, its macros."""

import base64
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from msgspec import Struct

from schemas.times import from_ms

# The plugin's query timeout of 60 s becomes the deadline of its client, which asks the server for five seconds more.
GRAFANA_SECONDS = 65


class Refused(Exception):
    """The server's error: its code and words."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(f"{code}: {words}")
        self.code = code


class Session(Struct, frozen=True):
    """A user's queries to the database of an address in the form of SVC_CLICKHOUSE_URL."""

    url: str

    def ask(self, sql: str, **settings: object) -> str:
        """The answer as text. Raises Refused."""
        parts = urllib.parse.urlsplit(self.url)
        parameters = {"max_execution_time": GRAFANA_SECONDS, "database": parts.path.strip("/"), **settings}
        name = f"{urllib.parse.unquote(parts.username or '')}:{urllib.parse.unquote(parts.password or '')}"
        request = urllib.request.Request(
            f"{parts.scheme}://{parts.hostname}:{parts.port}/?{urllib.parse.urlencode(parameters)}",
            data=sql.encode(),
            headers={
                "Authorization": "Basic " + base64.b64encode(name.encode()).decode(),
                "User-Agent": "grafana/12.0.0 clickhouse-datasource/4.11.0",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                code = error.headers.get("X-ClickHouse-Exception-Code", "")
                raise Refused(code, error.read(500).decode(errors="replace")) from None

    def rows(self, sql: str, **settings: object) -> list[list[Any]]:
        """The rows of an answer. Raises Refused."""
        answer = self.ask(
            sql,
            default_format="JSONCompact",
            output_format_json_quote_64bit_integers=0,
            wait_end_of_query=1,
            **settings,
        )
        return list(json.loads(answer)["data"])


def expanded(sql: str, start: int, end: int, variables: dict[str, object]) -> str:
    """The plugin's macros and Grafana's variables replaced; the range is Unix ms."""

    def between(first: str, last: str) -> str:
        return rf"\1 >= {first} AND \1 <= {last}"

    def date(ms: int) -> str:
        return f"toDate('{ms_date(ms)}')"

    def seconds(ms: int) -> str:
        return f"toDateTime({ms // 1000})"

    def exact(ms: int) -> str:
        return f"fromUnixTimestamp64Milli({ms})"

    sql = re.sub(r"\$__timeFilter_ms\((\w+)\)", between(exact(start), exact(end)), sql)
    sql = re.sub(r"\$__timeFilter\((\w+)\)", between(seconds(start), seconds(end)), sql)
    sql = re.sub(r"\$__dateFilter\((\w+)\)", between(date(start), date(end)), sql)
    sql = sql.replace("$__fromTime", seconds(start)).replace("$__toTime", seconds(end))
    for name, value in variables.items():
        sql = sql.replace(f"${name}", str(value))
    assert "$" not in sql, sql
    return sql


def ms_date(ms: int) -> str:
    """The day of a moment, UTC."""
    return from_ms(ms).date().isoformat()
