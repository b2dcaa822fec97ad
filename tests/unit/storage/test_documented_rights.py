"""The rights that docs/operating.md tells an administrator to give are those that our statements need."""

import re
from pathlib import Path

from tests.granted_clickhouse import documented

ROOT = Path(__file__).parents[3]
PACKAGES = ("storage", "dashboard", "processors")


def test_every_system_table_that_is_asked_may_be_read() -> None:
    asked = {
        table
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for table in re.findall(r"\b(?:FROM|JOIN) system\.([a-z_]+)", path.read_text(encoding="utf-8"))
    }
    assert asked
    assert asked == set(re.findall(r"GRANT SELECT ON system\.([a-z_]+) TO svc", documented()))


def test_every_engine_of_the_schema_may_be_used() -> None:
    schema = (ROOT / "storage/schema.sql").read_text(encoding="utf-8")
    used = set(re.findall(r"ENGINE = (\w+)", schema))
    assert used == set(re.findall(r"TABLE ENGINE ON (\w+)", documented()))
