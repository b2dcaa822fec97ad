"""Who changed what: changes of projects, erasures and sign-ins."""

from dashboard.api.operation import Call, NoInput, Operation
from dashboard.auth.access import Role
from dashboard.http.inputs import PageQuery
from schemas.read_api import ChangePage
from storage.read.change_calls import ListChanges


async def _list(call: Call[PageQuery, NoInput]) -> ChangePage:
    return await call.reader.read(ListChanges(call.administered(), call.query.limit, call.query.cursor))


async def _list_of_project(call: Call[PageQuery, NoInput]) -> ChangePage:
    projects = [call.project().number]
    return await call.reader.read(ListChanges(projects, call.query.limit, call.query.cursor))


OPERATIONS = (
    Operation("GET", "/changes", "Who changed what in the projects that you administer", _list, Role.NONE),
    Operation(
        "GET", "/projects/{project}/changes", "Who changed what in a project", _list_of_project, Role.ADMIN
    ),
)
