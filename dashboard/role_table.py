"""The section *Roles* of `docs/reference.md`: what each role may do. `python -m dashboard.role_table` writes it."""

from collections.abc import Iterable
from typing import Final

from dashboard.api.api_routes import OPERATIONS
from dashboard.auth.access import Role
from dashboard.http.paths import API
from dashboard.pages.page_routes import PAGES
from schemas.generate.reference import PAGE, ROLES

_TEXT: Final = (
    ROLES
    + """\

A role also has what is listed above it. It is the person's role in the project of the path, or in all projects where
the path names none. [How groups get roles](operate/access.md#roles).
"""
)


def role_table() -> str:
    """The section's text."""
    needs = [(f"{one.method:6} {API}{one.path}", one.needs) for one in OPERATIONS]
    needs += [(f"{one.method:6} {one.path}", one.needs) for one in PAGES]
    return _TEXT + "".join(_section(role, [name for name, least in needs if least is role]) for role in Role)


def _section(role: Role, names: Iterable[str]) -> str:
    title = role.title.capitalize() if role else "Signed in, without a role"
    return "\n".join(["", f"### {title}", "", "```", *names, "```", ""])


def with_roles() -> str:
    """The page with the section as it should be."""
    return PAGE.read_text(encoding="utf-8").partition(ROLES)[0] + role_table()


if __name__ == "__main__":
    PAGE.write_text(with_roles(), encoding="utf-8")
