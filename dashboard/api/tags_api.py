"""Tags and their values, and completion for the query box."""

from typing import Annotated

from msgspec import Meta, Struct

from dashboard.api.operation import Call, NoInput, Operation
from dashboard.auth.access import Role
from dashboard.http.inputs import RangeQuery, read_key
from schemas.read_api import Keys, TagFacets, TagValues
from storage.read.counts.completion import CompleteField, CompleteKey, CompleteTag
from storage.read.counts.tag_calls import CountIssueTags, CountProjectTags

Prefix = Annotated[str, Meta(max_length=200, description="prefix of the answers")]


class PrefixQuery(Struct, frozen=True):
    """The text typed so far."""

    prefix: Prefix = ""


async def _of_project(call: Call[RangeQuery, NoInput]) -> TagFacets:
    return await call.read_with_warnings(
        CountProjectTags(call.project().number, call.query.query, **call.query.bounds())
    )


async def _of_issue(call: Call[RangeQuery, NoInput]) -> TagFacets:
    return await call.read_with_warnings(
        CountIssueTags(call.issue(), call.query.query, **call.query.bounds())
    )


async def _values(call: Call[PrefixQuery, NoInput]) -> TagValues:
    return await call.reader.read(
        CompleteTag(call.project().number, read_key(call.path("key")), call.query.prefix)
    )


async def _field_values(call: Call[PrefixQuery, NoInput]) -> TagValues:
    return await call.reader.read(
        CompleteField(call.project().number, read_key(call.path("field")), call.query.prefix)
    )


async def _keys(call: Call[PrefixQuery, NoInput]) -> Keys:
    return await call.reader.read(CompleteKey(call.project().number, call.query.prefix))


OPERATIONS = (
    Operation(
        "GET",
        "/projects/{project}/tags",
        "Tags of a project's events, with the 10 most frequent values of each",
        _of_project,
        Role.VIEWER,
    ),
    Operation(
        "GET",
        "/issues/{issue}/tags",
        "Tags of an issue's events, with the 10 most frequent values of each",
        _of_issue,
        Role.VIEWER,
    ),
    Operation(
        "GET", "/projects/{project}/tags/{key}/values", "Values of a tag with a prefix", _values, Role.VIEWER
    ),
    Operation(
        "GET",
        "/projects/{project}/fields/{field}/values",
        "Values of a field of the query language with a prefix",
        _field_values,
        Role.VIEWER,
    ),
    Operation(
        "GET", "/projects/{project}/keys", "Keys with a prefix that a query may use", _keys, Role.VIEWER
    ),
)
