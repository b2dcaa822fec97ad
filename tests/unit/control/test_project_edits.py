from typing import Any

import msgspec
import pytest

from control.project_edits import (
    MAX_TOKENS,
    Owner,
    ProjectChanges,
    add_token,
    create,
    revoke_token,
    token_of,
    update,
)
from schemas.errors import BadChange
from schemas.ids import decode_token
from schemas.projects import Project

NOW = 1_760_000_000_000
LATER = NOW + 5_000


def a_project(**changes: Any) -> Project:
    return msgspec.structs.replace(create("shop", now_ms=NOW), **changes)


def test_new_project_has_one_well_formed_token_and_the_defaults_of_the_protocol() -> None:
    project = create("shop", now_ms=NOW)
    assert len(project.tokens) == 1
    assert decode_token(project.tokens[0].token) is not None
    assert project.rate_limit_per_minute == 5000
    assert project.created_at == "2025-10-09T08:53:20.000Z"
    assert project.number > 0


def test_given_limits_are_kept() -> None:
    project = create("shop", rate_limit=7, retention_days=3, lenient_sdks=["react-native/*"], now_ms=NOW)
    assert (project.rate_limit_per_minute, project.retention_days) == (7, 3)
    assert project.is_lenient("react-native/1.0")
    assert not project.is_lenient("swift/1.0")


def test_white_space_around_a_name_goes() -> None:
    assert create("  shop ", now_ms=NOW).name == "shop"


@pytest.mark.parametrize("name", ["", "   ", "x" * 101, "a\nb", "a\u2028b"])
def test_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(BadChange) as refused:
        create(name, now_ms=NOW)
    assert refused.value.details[0].field == "name"


def test_every_wrong_field_is_named() -> None:
    with pytest.raises(BadChange) as refused:
        create("", rate_limit=0, retention_days=4000, lenient_sdks=["ok", ""], now_ms=NOW)
    fields = [detail.field for detail in refused.value.details]
    assert fields == ["name", "rateLimitPerMinute", "retentionDays", "lenientSdks[1]"]


def test_update_changes_only_the_given_fields() -> None:
    project = a_project()
    changed = update(project, ProjectChanges(rate_limit_per_minute=9))
    assert changed == msgspec.structs.replace(project, rate_limit_per_minute=9)


@pytest.mark.parametrize(
    ("owner", "field"),
    [
        (Owner("file:(", "zoe"), "owners[1].match"),
        (Owner("is:open", "zoe"), "owners[1].match"),
        (Owner("x" * 1001, "zoe"), "owners[1].match"),
        (Owner("a\nb", "zoe"), "owners[1].match"),
        (Owner("file:a", ""), "owners[1].assignee"),
        (Owner("file:a", "z" * 201), "owners[1].assignee"),
    ],
)
def test_an_owner_that_cannot_be_found_is_refused(owner: Owner, field: str) -> None:
    with pytest.raises(BadChange) as refused:
        update(a_project(), ProjectChanges(owners=(Owner("", "z" * 200), owner)))
    assert [detail.field for detail in refused.value.details] == [field]


@pytest.mark.parametrize(
    "template",
    [
        "git.example/{file}",
        "javascript:alert({line})",
        "https:///{file}",
        "https://{app}.example/{file}",
        "https://git.example{file}",
        "https://git.example\\@evil.example/{file}",
        "https://[git/{file}",
        "https://git.example/{file.__class__}",
        "https://git.example/{0}{}",
        "https://git.example/{file} {line}",
        "https://git.example/" + "x" * 500,
    ],
)
def test_a_link_template_that_is_no_address_is_refused(template: str) -> None:
    with pytest.raises(BadChange, match="linkTemplate"):
        update(a_project(), ProjectChanges(link_template=template))


def test_a_link_template_is_kept_and_removed() -> None:
    template = "https://git.example:8443/{app}/{version}/{build}/{release}/{file}#L{line}"
    project = update(a_project(), ProjectChanges(link_template=template))
    assert project.link_template == template
    assert update(project, ProjectChanges(link_template="")).link_template == ""


def test_a_project_has_at_most_a_hundred_owners() -> None:
    owners = (Owner("file:src/*", "zoe"),) * 100
    assert update(a_project(), ProjectChanges(owners=owners)).owners == owners
    with pytest.raises(BadChange, match="owners"):
        update(a_project(), ProjectChanges(owners=(*owners, owners[0])))


def test_payloads_are_not_kept_longer_than_their_events() -> None:
    with pytest.raises(BadChange, match="payloadRetentionDays"):
        update(a_project(), ProjectChanges(retention_days=10, payload_retention_days=11))
    project = update(a_project(), ProjectChanges(retention_days=10, payload_retention_days=10))
    assert update(project, ProjectChanges(payload_retention_days=None)).payload_retention_days is None


def test_added_token_works_next_to_the_old_one() -> None:
    project = a_project()
    changed = add_token(project, LATER)
    token = token_of(changed, "")
    assert changed.tokens == (*project.tokens, token)
    assert token.token != project.tokens[0].token


def test_tokens_are_bounded() -> None:
    token = a_project().tokens[0]
    with pytest.raises(BadChange, match="at most"):
        add_token(a_project(tokens=(token,) * MAX_TOKENS), LATER)


def test_revoking_twice_keeps_the_first_time() -> None:
    project = a_project()
    token = project.tokens[0].token
    revoked = revoke_token(project, token, LATER)
    assert revoked.tokens[0].revoked_at == "2025-10-09T08:53:25.000Z"
    assert revoke_token(revoked, token, LATER + 1000) == revoked


def test_unknown_token_cannot_be_revoked() -> None:
    with pytest.raises(BadChange, match="not a token of this project"):
        revoke_token(a_project(), "svc_pk_unknown", LATER)
