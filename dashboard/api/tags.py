"""Tags and their values, and completion for the query box."""

from typing import Annotated

from msgspec import Meta, Struct

from dashboard.api.operation import Call, NoInput, Operation
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
        method="GET",
        path="/projects/{project}/tags",
        summary="Tags of a project's events, with the 10 most frequent values of each",
        handler=_of_project,
        query=RangeQuery,
        answer=TagFacets,
        polled=True,
    ),
    Operation(
        method="GET",
        path="/issues/{issue}/tags",
        summary="Tags of an issue's events, with the 10 most frequent values of each",
        handler=_of_issue,
        query=RangeQuery,
        answer=TagFacets,
        polled=True,
    ),
    Operation(
        method="GET",
        path="/projects/{project}/tags/{key}/values",
        summary="Values of a tag with a prefix",
        handler=_values,
        query=PrefixQuery,
        answer=TagValues,
    ),
    Operation(
        method="GET",
        path="/projects/{project}/fields/{field}/values",
        summary="Values of a field of the query language with a prefix",
        handler=_field_values,
        query=PrefixQuery,
        answer=TagValues,
    ),
    Operation(
        method="GET",
        path="/projects/{project}/keys",
        summary="Keys with a prefix that a query may use",
        handler=_keys,
        query=PrefixQuery,
        answer=Keys,
    ),
)
