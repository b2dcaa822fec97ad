"""Tags and their values, and completion for the query box."""

from typing import Annotated

from msgspec import Meta, Struct

from dashboard.api.operation import Call, NoInput, operation
from dashboard.auth.access import Role
from dashboard.http.inputs import RangeQuery, read_key
from schemas.read_api import Keys, TagFacets, TagValues
from storage.read.counts.completion import CompleteField, CompleteKey, CompleteTag
from storage.read.counts.tag_calls import CountIssueTags, CountProjectTags

Prefix = Annotated[str, Meta(max_length=200, description="prefix of the answers")]


class PrefixQuery(Struct, frozen=True):
    """The text typed so far."""

    prefix: Prefix = ""


@operation("GET", "/projects/{project}/tags", Role.VIEWER)
async def _of_project(call: Call[RangeQuery, NoInput]) -> TagFacets:
    """Tags of a project's events, with the 10 most frequent values of each."""
    return await call.read_with_warnings(
        CountProjectTags(call.project().number, call.query.query, **call.query.bounds())
    )


@operation("GET", "/issues/{issue}/tags", Role.VIEWER)
async def _of_issue(call: Call[RangeQuery, NoInput]) -> TagFacets:
    """Tags of an issue's events, with the 10 most frequent values of each."""
    return await call.read_with_warnings(
        CountIssueTags(call.issue(), call.query.query, **call.query.bounds())
    )


@operation("GET", "/projects/{project}/tags/{key}/values", Role.VIEWER)
async def _values(call: Call[PrefixQuery, NoInput]) -> TagValues:
    """Values of a tag with a prefix."""
    return await call.reader.read(
        CompleteTag(call.project().number, read_key(call.path("key")), call.query.prefix)
    )


@operation("GET", "/projects/{project}/fields/{field}/values", Role.VIEWER)
async def _field_values(call: Call[PrefixQuery, NoInput]) -> TagValues:
    """Values of a field of the query language with a prefix."""
    return await call.reader.read(
        CompleteField(call.project().number, read_key(call.path("field")), call.query.prefix)
    )


@operation("GET", "/projects/{project}/keys", Role.VIEWER)
async def _keys(call: Call[PrefixQuery, NoInput]) -> Keys:
    """Keys with a prefix that a query may use."""
    return await call.reader.read(CompleteKey(call.project().number, call.query.prefix))


OPERATIONS = (_of_project, _of_issue, _values, _field_values, _keys)
