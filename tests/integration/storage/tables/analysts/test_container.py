"""The file that makes an analyst in containers is understood by a real engine, and gives the same rights."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.clickhouse.local_clickhouse import LocalClickHouse
from storage.tables.analyst_views import VIEWS
from storage.tables.migrations.migrate import migrate
from tests.integration.storage.tables.analysts.session import Refused, Session

FILE = Path(__file__).parents[5] / "docker" / "analysts.xml"


class WithContainersFile(LocalClickHouse):
    """Without the local analyst, but with the containers' file where their image reads it from."""

    def prepare(self) -> list[str]:
        command = super().prepare()
        users = self.directory / "users.xml"
        users.write_text(re.sub(r" +<analyst>.*?</analyst>\n", "", users.read_text(), flags=re.DOTALL))
        (self.directory / "users.d").mkdir(exist_ok=True)
        (self.directory / "users.d" / "analysts.xml").write_text(FILE.read_text())
        return command


@pytest.fixture
def analyst(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setenv("CLICKHOUSE_ANALYST_PASSWORD", "a word")
    server = WithContainersFile(tmp_path / "clickhouse").start(120)
    migrate(server.url())
    yield Session(re.sub(r"//[^@]+@", "//analyst:a%20word@", server.url()))
    server.stop()


@pytest.mark.slow
def test_the_containers_analyst_reads_the_views_within_its_limits(analyst: Session) -> None:
    for view in VIEWS:
        assert analyst.rows(f"SELECT count() FROM {view}") == [[0]]
    for sql, code in (
        ("SELECT count() FROM svc.events", "497"),
        ("SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString', 'x String')", "497"),
        ("SELECT 1 SETTINGS max_execution_time = 91", "452"),
        ("SELECT 1 SETTINGS max_memory_usage = 0", "452"),
    ):
        with pytest.raises(Refused) as refused:
            analyst.rows(sql)
        assert refused.value.code == code
