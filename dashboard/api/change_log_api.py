"""Who changed what: changes of projects, erasures and sign-ins."""

from dashboard.api.operation import Call, NoInput, operation
from dashboard.auth.access import Role
from dashboard.http.inputs import PageQuery
from schemas.read_api import ChangePage
from storage.read.change_calls import ListChanges


@operation("GET", "/changes", Role.NONE)
async def _list(call: Call[PageQuery, NoInput]) -> ChangePage:
    """Who changed what in the projects that you administer."""
    return await call.reader.read(ListChanges(call.administered(), call.query.limit, call.query.cursor))


@operation("GET", "/projects/{project}/changes", Role.ADMIN)
async def _list_of_project(call: Call[PageQuery, NoInput]) -> ChangePage:
    """Who changed what in a project."""
    projects = [call.project().number]
    return await call.reader.read(ListChanges(projects, call.query.limit, call.query.cursor))


OPERATIONS = (_list, _list_of_project)
