"""What grouping has learnt of a project: read, overruled, and used again."""

from msgspec import Struct

from control.project_edits import overrule
from dashboard.api.operation import Call, NoInput, Operation
from dashboard.dependencies import State
from dashboard.http.http_errors import not_found
from dashboard.projects import edit_project
from schemas.projects import FactKind, LearntFact, Project
from schemas.times import iso


class LearntView(Struct, frozen=True, rename="camel"):
    """A learnt fact; an overruled one isn't used for new events.

    `helper`: the frame `text` is a helper, so its caller and the message count. `varies`: word `at` of the message `text`, a `<*>`,
    doesn't count. `telling`: where the `<*>` number `at` of the message `text` is one of `values`, it counts. Both numbers begin at 0.

    `callers` and `messages` (for `varies`, values of the word) are how many were seen by `learntAt`.
    """

    id: str
    kind: FactKind
    text: str
    at: int
    values: list[str]
    callers: int
    messages: int
    learnt_at: str
    overruled: bool


class LearntList(Struct, frozen=True):
    """What grouping has learnt of a project, the oldest first."""

    learnt: list[LearntView]


class FactChange(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether new events are grouped without the fact."""

    overruled: bool


async def set_overruled(
    state: State, project: Project, fact_id: str, *, overruled: bool, request: str = ""
) -> LearntFact:
    """Overrule a fact, or use it again. `request` is the request's name under its idempotency key.

    Raises HttpError, KeyReused, ProjectsUnavailable.
    """

    def edit(old: Project) -> Project:
        _find(old, fact_id)
        return overrule(old, fact_id, overruled=overruled)

    return _find(await edit_project(state, project, edit, request), fact_id)


def _find(project: Project, fact_id: str) -> LearntFact:
    for fact in project.learnt:
        if fact.id == fact_id:
            return fact
    raise not_found("this fact doesn't exist")


async def _list(call: Call[NoInput, NoInput]) -> LearntList:
    return LearntList([_view(fact) for fact in call.project().learnt])


async def _change(call: Call[NoInput, FactChange]) -> LearntView:
    project = call.project()
    fact = await set_overruled(
        call.state,
        project,
        call.path("fact"),
        overruled=call.body.overruled,
        request=call.request_name(project.id),
    )
    return _view(fact)


def _view(fact: LearntFact) -> LearntView:
    return LearntView(
        id=fact.id,
        kind=fact.kind,
        text=fact.text,
        at=fact.at,
        values=list(fact.values),
        callers=fact.callers,
        messages=fact.messages,
        learnt_at=iso(fact.learnt_at),
        overruled=fact.overruled,
    )


OPERATIONS = (
    Operation(
        method="GET",
        path="/projects/{project}/learnt",
        summary="What grouping has learnt of the project",
        handler=_list,
        answer=LearntList,
    ),
    Operation(
        method="POST",
        path="/projects/{project}/learnt/{fact}",
        summary="Overrule a learnt fact, or use it again; applies to new events",
        handler=_change,
        body=FactChange,
        answer=LearntView,
    ),
)
