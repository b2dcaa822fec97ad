"""The statements for other servers give analysts the same rights as the local server's users.xml."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from local.clickhouse.local_clickhouse import LocalClickHouse
from storage.tables.analyst_grants import (
    FIXED,
    LIMITS,
    Analyst,
    analyst_statements,
    role_statements,
    view_statements,
)
from storage.tables.analyst_views import DEFINER, TABLES, VIEWS
from storage.tables.migrations.migrate import migrations, statements

DOCKER = Path(__file__).parents[4] / "docker"
# Settings of the local engine only.
LOCAL_ONLY = {"allow_python_table_function"}
HASH = "0" * 64


@pytest.fixture
def users(tmp_path: Path) -> ElementTree.Element:
    LocalClickHouse(tmp_path, analyst_projects=(23, 17)).prepare()
    return ElementTree.parse(tmp_path / "users.xml").getroot()


@pytest.fixture(params=["local", "docker"])
def either(request: pytest.FixtureRequest, users: ElementTree.Element) -> ElementTree.Element:
    return users if request.param == "local" else ElementTree.parse(DOCKER / "analysts.xml").getroot()


def grants(users: ElementTree.Element, user: str) -> list[str]:
    return [query.text or "" for query in users.findall(f"users/{user}/grants/query")]


def test_settings_and_their_bounds_are_the_same(either: ElementTree.Element) -> None:
    profile = either.find("profiles/analyst")
    assert profile is not None
    values = {item.tag: item.text for item in profile if item.tag not in {"constraints", *LOCAL_ONLY}}
    assert values == {limit.name: str(limit.value) for limit in LIMITS}
    constraints = profile.find("constraints")
    assert constraints is not None
    bounds = {
        item.tag: None if item.find("const") is not None else (item.findtext("min"), item.findtext("max"))
        for item in constraints
        if item.tag not in LOCAL_ONLY
    }
    assert bounds == {
        limit.name: None if limit.choice is None else tuple(str(bound) for bound in limit.choice)
        for limit in LIMITS
        if limit.name != "readonly"  # locked by itself
    } | dict.fromkeys(FIXED)


def test_no_limit_can_be_taken_off_by_a_zero() -> None:
    assert all(limit.choice is None or limit.choice[0] > 0 for limit in LIMITS)


def test_grants_are_the_same(either: ElementTree.Element) -> None:
    role = [s for s in role_statements("svc") if s.startswith("GRANT")]
    assert [s.replace("`", "").removesuffix(" TO svc_analyst") for s in role] == grants(either, "analyst")


def test_the_views_user_may_read_the_same(users: ElementTree.Element) -> None:
    own = analyst_statements("svc", Analyst("bob", HASH, (17,)))
    definer = [s.replace("`", "") for s in own if s.endswith("TO `svc_bob_views`") and s.startswith("GRANT")]
    assert [s.removesuffix(" TO svc_bob_views") for s in definer] == grants(users, DEFINER)[:-1]
    # And databases of tests.
    assert grants(users, DEFINER)[-1] == "GRANT SELECT ON test_*.*"


def test_row_policies_are_the_same(users: ElementTree.Element) -> None:
    filters = users.findall(f"users/{DEFINER}/databases/svc/*")
    here = {item.tag: item.findtext("filter") for item in filters}
    assert here == dict.fromkeys(TABLES, "project_id IN (17, 23)")
    policy = re.compile(
        r"CREATE ROW POLICY OR REPLACE `svc_bob_views` ON `svc`\.(\w+) USING (.*) TO `svc_bob_views`"
    )
    statements = analyst_statements("svc", Analyst("bob", HASH, (23, 17)))
    there = {match[1]: match[2] for s in statements if (match := policy.fullmatch(s))}
    assert there == here
    assert users.find("users/analyst/databases") is None


def test_an_analyst_of_every_project_needs_no_policy(tmp_path: Path) -> None:
    LocalClickHouse(tmp_path).prepare()
    assert ElementTree.parse(tmp_path / "users.xml").find(f"users/{DEFINER}/databases") is None
    assert not any("POLICY" in s for s in analyst_statements("svc", Analyst("ann", HASH)))


def test_names_are_quoted() -> None:
    text = "\n".join(analyst_statements("svc", Analyst("a`b", HASH, (1,))))
    assert "CREATE USER IF NOT EXISTS `a\\`b` IDENTIFIED" in text
    assert not re.search(r"(?<!\\)`b`", text)


def test_every_view_of_the_migrations_is_named_and_reads_as_its_definer() -> None:
    head = re.compile(r"CREATE (?:OR REPLACE )?VIEW (?:IF NOT EXISTS )?(analyst_\w+)")
    made = {s: match[1] for m in migrations() for s in statements(m.sql) if (match := head.match(s))}
    assert set(made.values()) == set(VIEWS)
    assert all("\nDEFINER = CURRENT_USER SQL SECURITY DEFINER\n" in statement for statement in made)
    own = list(view_statements("svc_bob", "svc_bob_views"))
    assert len(own) == len(VIEWS)
    assert not any("AggregateFunction" in s for s in own if "_states\n" not in s.partition("(")[0])
    assert all("\nDEFINER = `svc_bob_views` SQL SECURITY DEFINER\n" in statement for statement in own)


def test_the_tables_with_policies_are_those_that_the_views_read() -> None:
    sql = "\n".join(s for m in migrations() for s in statements(m.sql) if s.startswith("CREATE VIEW"))
    assert set(re.findall(r"(?:FROM|JOIN) (\w+)", sql)) == {*TABLES, "issue_of"}
    assert {view for view in VIEWS if f"{view}\n" not in sql} == set()


def test_containers_let_analysts_in_only_when_asked() -> None:
    added = yaml.safe_load((DOCKER / "compose.analysts.yml").read_text())["services"]["clickhouse"]
    source, target, mode = added["volumes"][0].split(":")
    assert (DOCKER / source).exists()
    assert (target, mode) == ("/etc/clickhouse-server/users.d/analysts.xml", "ro")
    assert all(port.startswith("127.0.0.1:") for port in added["ports"])
    password = ElementTree.parse(DOCKER / "analysts.xml").find("users/analyst/password")
    assert password is not None
    assert password.get("from_env") in added["environment"]
    assert "analysts.xml" not in (DOCKER / "compose.yml").read_text()
