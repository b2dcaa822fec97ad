"""The registry of projects and tokens."""

import msgspec
import pytest

from schemas.ids import new_token
from schemas.projects import (
    ALL_PROJECTS,
    LAST_USE,
    ApiKey,
    Project,
    ProjectRegistry,
    Token,
    encode_project,
    key_hash,
)

WHEN = "2026-01-01T00:00:00.000Z"


def project(number: int, *tokens: Token, **changes: object) -> Project:
    return msgspec.structs.replace(Project(str(number), f"p{number}", WHEN, tokens), **changes)


def put(registry: ProjectRegistry, value: Project) -> None:
    registry.apply(value.id.encode(), encode_project(value))


def test_a_revoked_token_finds_nothing() -> None:
    registry, token = ProjectRegistry(), new_token()
    put(registry, project(1, Token(token, WHEN)))
    put(registry, project(1, Token(token, WHEN, revoked_at=WHEN)))
    assert registry.by_token(token) is None


def test_a_removed_project_takes_its_tokens_along() -> None:
    registry, token = ProjectRegistry(), new_token()
    put(registry, project(1, Token(token, WHEN)))
    registry.apply(b"1", None)
    assert registry.by_token(token) is None
    assert registry.get(1) is None
    assert len(registry) == 0


def test_several_tokens_lead_to_one_project() -> None:
    registry, tokens = ProjectRegistry(), [new_token(), new_token()]
    put(registry, project(5, *(Token(t, WHEN) for t in tokens)))
    assert [registry.by_token(t) for t in tokens] == [registry.get(5), registry.get(5)]


@pytest.mark.parametrize("value", [b"", b"{", b'{"id": 3}', b"\xff"])
def test_a_bad_record_leaves_the_registry_as_it_was(value: bytes) -> None:
    registry, token = ProjectRegistry(), new_token()
    put(registry, project(1, Token(token, WHEN)))
    if value:
        with pytest.raises(ValueError, match=r".+"):
            registry.apply(b"1", value)
        assert registry.by_token(token) is not None


@pytest.mark.parametrize(
    ("pattern", "sdk", "lenient"),
    [
        ("react-native/*", "react-native/1.2", True),
        ("react-native/*", "swift/1", False),
        ("*", "any/0", True),
    ],
)
def test_lenient_sdks_are_named_by_pattern(pattern: str, sdk: str, lenient: bool) -> None:
    assert project(1, lenient_sdks=(pattern,)).is_lenient(sdk) is lenient


def test_keys_go_with_their_record_and_that_of_all_projects_is_no_project() -> None:
    registry = ProjectRegistry()
    keys = {
        number: ApiKey(
            id=f"{number}",
            name="ci",
            scopes=("read",),
            created_at=WHEN,
            created_by="ann",
            expires_at=None,
            hash=key_hash(f"{number}"),
        )
        for number in (1, ALL_PROJECTS)
    }
    for number, key in keys.items():
        put(registry, project(number, keys=(key,)))
    assert {owner.number: key for owner, key in registry.keys.values()} == keys
    assert [known.number for known in registry] == [1]
    assert (len(registry), registry.get(ALL_PROJECTS)) == (1, None)
    for number in keys:
        registry.apply(b"%d" % number, None)
    assert registry.keys == {}


def test_a_keys_last_use_changes_no_project() -> None:
    registry = ProjectRegistry()
    put(registry, project(1))
    before = registry.version
    registry.apply(LAST_USE + b"ab", b'"2026-01-02"')
    registry.apply(LAST_USE + b"cd", b'"2026-01-02"')
    registry.apply(LAST_USE + b"cd", None)
    assert (registry.last_used["ab"], registry.last_used.get("cd", "")) == ("2026-01-02", "")
    assert (registry.version, len(registry)) == (before, 1)
