"""Roles: what people may do, everywhere and by project. `SVC_DASHBOARD_ROLES` gives them to groups."""

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from schemas.errors import BadSetting
from schemas.projects import Project

EVERYONE: Final = "*"
"""The group of all who signed in."""
Group = Annotated[str, Meta(min_length=1)]


class Role(IntEnum):
    """Each role includes those before it."""

    NONE = 0
    VIEWER = 1
    MEMBER = 2
    ADMIN = 3

    @property
    def title(self) -> str:
        return self.name.lower()


class Access(Struct, frozen=True):
    """A role in all projects, and further roles: a person's by a project's id or name, a key's by the id alone."""

    everywhere: Role = Role.NONE
    projects: Mapping[str, Role] = {}
    ids: Mapping[str, Role] = {}
    uploads: frozenset[str] = frozenset()
    """The ids of projects whose source maps a key may change; `*` for all."""

    def role_in(self, project: Project) -> Role:
        """The highest of the roles; for whoever has none, the project doesn't exist."""
        of_project = (self.projects.get(key, Role.NONE) for key in (project.id, project.name))
        return max(self.everywhere, self.ids.get(project.id, Role.NONE), *of_project)

    def may_upload(self, project: Project) -> bool:
        """Whether a key may change the project's source maps."""
        return not self.uploads.isdisjoint((EVERYONE, project.id))

    def visible(self, projects: Iterable[Project]) -> list[Project]:
        """The projects that exist for the person."""
        return [project for project in projects if self.role_in(project)]


EVERYTHING: Final = Access(Role.ADMIN)


class RoleGroups(Struct, frozen=True, forbid_unknown_fields=True):
    """The groups that have each role."""

    viewer: tuple[Group, ...] = ()
    member: tuple[Group, ...] = ()
    admin: tuple[Group, ...] = ()

    def role_of(self, groups: Collection[str]) -> Role:
        """The highest role of a person in these groups."""
        own = {EVERYONE, *groups}
        by_role = {Role.ADMIN: self.admin, Role.MEMBER: self.member, Role.VIEWER: self.viewer}
        return next((role for role, given in by_role.items() if not own.isdisjoint(given)), Role.NONE)


class Roles(RoleGroups, frozen=True, forbid_unknown_fields=True):
    """The groups that have each role in all projects, and by a project's id or name."""

    projects: dict[str, RoleGroups] = {}

    def access_of(self, groups: Collection[str]) -> Access:
        """What a person in these groups may do."""
        return Access(
            self.role_of(groups), {project: given.role_of(groups) for project, given in self.projects.items()}
        )


def parse_roles(text: str) -> Roles:
    """The setting's JSON. Raises BadSetting, which says where it is wrong."""
    try:
        return msgspec.json.decode(text, type=Roles)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadSetting(f"SVC_DASHBOARD_ROLES: {error}") from None
