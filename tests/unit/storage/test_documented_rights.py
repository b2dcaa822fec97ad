"""The rights that docs/operate/permissions.md tells an administrator to give are those that our statements need."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from broker.rights import needs, rebuild_rights
from schemas.settings import KafkaSettings, PipelineSettings
from schemas.topics import Topic
from storage.rights import ON_REPLICAS, Right, Rights, operator_rights, reader_rights, writer_rights
from storage.tables.migrations.migrate import TABLE, migrations
from tests.granted_clickhouse import documented, grants

ROOT = Path(__file__).parents[3]
PACKAGES = ("storage", "dashboard", "processors")
USERS: dict[str, Rights] = {
    "svc_operator": operator_rights,
    "svc": writer_rights,
    "svc_reader": reader_rights,
}


def test_every_system_table_that_is_asked_may_be_read() -> None:
    queried = {
        table
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for table in re.findall(r"\b(?:FROM|JOIN) system\.([a-z_]+)", path.read_text(encoding="utf-8"))
    }
    assert queried
    page = documented() + (ROOT / "docs/operate/shards.md").read_text(encoding="utf-8")
    assert queried == set(re.findall(r"GRANT SELECT ON system\.([a-z_]+) TO svc_operator", page))
    assert queried >= {*ON_REPLICAS}


def test_every_engine_of_the_schema_may_be_used() -> None:
    schema = TABLE + "".join(migration.sql for migration in migrations())
    used = set(re.findall(r"ENGINE = (\w+)", schema))
    assert used == set(re.findall(r"TABLE ENGINE ON (\w+)", documented()))


def test_doctor_checks_the_documented_rights() -> None:
    def granted(user: str) -> set[str]:
        return {
            f"{privilege.strip().removesuffix(' ON ' + on)} ON {on}"
            for statement in grants(user)
            for privileges, on in [statement.removeprefix("GRANT ").rsplit(" ON ", 1)]
            for privilege in privileges.split(",")
        }

    def checked(rights: Iterable[Right]) -> set[str]:
        return {str(right) for right in rights}

    engines = {right for right in checked(operator_rights("svc")) if right.startswith("TABLE ENGINE")}
    assert checked(reader_rights("svc")) == granted("svc_reader")
    assert checked(writer_rights("svc")) == granted("svc")
    assert checked(operator_rights("svc")) - engines == {
        right for right in granted("svc_operator") if not right.startswith("TABLE ENGINE")
    }
    assert engines == {f"TABLE ENGINE ON {engine}" for engine in re.findall(r"ENGINE ON (\w+)", documented())}


@pytest.mark.parametrize(
    ("part", "several"), [(0, (True, False)), (1, (False, True))], ids=["shards", "replicas"]
)
def test_doctor_checks_the_documented_rights_on_several_servers(
    part: int, several: tuple[bool, bool]
) -> None:
    page = (ROOT / "docs/operate/shards.md").read_text(encoding="utf-8").split("\n## Replicas")[part]
    for user, rights in USERS.items():
        documented_rights = {
            f"{privilege.strip()} ON {on}"
            for privileges, on in re.findall(rf"^GRANT (.+) ON (\S+) TO {user};$", page, re.MULTILINE)
            for privilege in privileges.split(",")
        }
        assert documented_rights == set(map(str, {*rights("svc", *several)} - {*rights("svc", False, False)}))


def test_doctor_checks_the_documented_rights_on_kafka() -> None:
    page = (ROOT / "docs/operate/permissions.md").read_text(encoding="utf-8")
    section = page[page.index("## Kafka") : page.index("## ClickHouse")]
    rows = {
        name: tuple(tuple(re.findall(r"`([^`]+)`", cell)) for cell in cells.split("|"))
        for name, cells in re.findall(r"^\| `svc (\w+)` \|(.+)\|$", section, re.MULTILINE)
    }
    assert rows == {
        process: (
            tuple(topic.title for topic in need.reads),
            tuple(topic.title for topic in need.writes),
            need.groups,
        )
        for process, need in needs(PipelineSettings(grouped_events=True)).items()
        if process != "operator"
    }


def test_each_right_of_an_operator_is_documented_with_its_command() -> None:
    page = (ROOT / "docs/operate/permissions.md").read_text(encoding="utf-8")
    section = page[page.index("### Commands") : page.index("## ClickHouse")]
    rows = [line.split("|")[2:5] for line in section.splitlines() if line.startswith("| `")]
    reads, writes, others = (" ".join(cells) for cells in zip(*rows, strict=True))
    need = needs(PipelineSettings(grouped_events=True))["operator"]
    assert "all" in reads
    assert need.reads == tuple(Topic)
    assert {topic.title for topic in need.writes} == set(re.findall(r"`([^`]+)`", writes))
    assert all(f"`{right.name.removeprefix('svc.')}`" in others for right in rebuild_rights(KafkaSettings()))
    assert all(f"`{group}`" in others for group in need.groups)
