"""The registry of projects and tokens."""

import msgspec
import pytest

from schemas.ids import new_token
from schemas.projects import Project, ProjectRegistry, Token, encode_project

WHEN = "2026-01-01T00:00:00.000Z"


def project(number: int, *tokens: Token, **changes: object) -> Project:
    return msgspec.structs.replace(Project(str(number), f"p{number}", WHEN, tokens), **changes)


def put(registry: ProjectRegistry, value: Project) -> None:
    registry.apply(value.id.encode(), encode_project(value))


def test_a_token_finds_its_project() -> None:
    registry, token = ProjectRegistry(), new_token()
    put(registry, project(1, Token(token, WHEN)))
    found = registry.by_token(token)
    assert found is not None
    assert found.number == 1
    assert registry.by_token(new_token()) is None


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
