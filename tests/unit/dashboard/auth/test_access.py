import msgspec
import pytest

from control.project_edits import create
from dashboard.auth.access import EVERYTHING, Access, Role, parse_roles
from schemas.errors import BadSetting
from schemas.projects import Project

ROLES = parse_roles(
    '{"admin": ["sre"], "member": ["dev"], "viewer": ["*"], "projects":'
    ' {"shop": {"member": ["shop-team"], "viewer": ["*"]}, "17": {"admin": ["owners"]}}}'
)


def project(number: int, name: str) -> Project:
    return msgspec.structs.replace(create(name, now_ms=0), id=str(number))


@pytest.mark.parametrize(
    ("groups", "everywhere", "in_shop", "in_17"),
    [
        ((), Role.VIEWER, Role.VIEWER, Role.VIEWER),
        (("dev",), Role.MEMBER, Role.MEMBER, Role.MEMBER),
        (("sre", "dev"), Role.ADMIN, Role.ADMIN, Role.ADMIN),
        (("shop-team",), Role.VIEWER, Role.MEMBER, Role.VIEWER),
        (("owners",), Role.VIEWER, Role.VIEWER, Role.ADMIN),
        (("Dev", "sre ", "shop"), Role.VIEWER, Role.VIEWER, Role.VIEWER),
    ],
)
def test_a_person_has_the_highest_role_of_all_groups(
    groups: tuple[str, ...], everywhere: Role, in_shop: Role, in_17: Role
) -> None:
    access = ROLES.access_of(groups)
    assert access.everywhere is everywhere
    assert access.role_in(project(3, "shop")) is in_shop
    assert access.role_in(project(17, "other")) is in_17


def test_without_a_role_a_project_is_invisible() -> None:
    shop, other = project(3, "shop"), project(17, "other")
    assert Access().visible([shop, other]) == []
    assert Access(projects={"shop": Role.VIEWER}).visible([shop, other]) == [shop]
    assert EVERYTHING.visible([shop, other]) == [shop, other]
    assert parse_roles("{}").access_of(("sre",)) == Access()


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "truncated"),
        ("[]", "object"),
        ('{"viewers": ["*"]}', "viewers"),
        ('{"viewer": "*"}', "$.viewer"),
        ('{"viewer": [""]}', "$.viewer[0]"),
        ('{"projects": {"shop": {"owner": ["a"]}}}', "owner"),
        ('{"projects": {"shop": {"admin": [1]}}}', "$.projects[...].admin[0]"),
    ],
)
def test_a_bad_setting_says_where(text: str, where: str) -> None:
    with pytest.raises(BadSetting, match="SVC_DASHBOARD_ROLES: ") as refused:
        parse_roles(text)
    assert where in str(refused.value)
