"""The reading half of storage: one method of `Reader` answers each read call (contract, section 4).

    reader = Reader.open(url, Limits())                   # connects with the first question; `await reader.close()` at the end
    await reader.ping()                                   # raises StorageUnavailable

    await reader.issues(project, query="", start=None, end=None, sort="lastSeen", limit=50, cursor=None)   -> IssuePage
    await reader.issue(issue, query="", start=None, end=None)                                              -> Issue
    await reader.activity(issue, limit=50, cursor=None)                                                    -> ActivityPage
    await reader.issue_events(issue, query="", start=None, end=None, limit=50, cursor=None)                -> EventPage
    await reader.project_events(project, query="", start=None, end=None, limit=50, cursor=None)            -> EventPage
    await reader.issue_event(issue, event)        # an id, "latest" or "oldest"                            -> EventDetail
    await reader.project_event(project, event)    # the same                                               -> EventDetail
    await reader.sample(project, query="", start=None, end=None, limit=500)       # events whole             -> list[Sample]
    await reader.issues_by_fingerprint(project, fingerprints)                                              -> dict[str, str]
    await reader.issue_tags(issue, query="", start=None, end=None)                                         -> TagFacets
    await reader.project_tags(project, query="", start=None, end=None)                                     -> TagFacets
    await reader.tag_values(project, key, prefix="")                                                       -> TagValues
    await reader.field_values(project, field, prefix="")  # of the query language's fields                 -> TagValues
    await reader.keys(project, prefix="")         # fields and tags that a query may name                  -> Keys
    await reader.issue_stats(issue, query="", interval=None, start=None, end=None)                         -> Series
    await reader.project_stats(project, query="", interval=None, start=None, end=None)                     -> Series
    await reader.releases(project, limit=50, cursor=None)                                                  -> Releases
    await reader.outcomes(project, start=None, end=None, interval=None)                                    -> Outcomes
    await reader.rules_skipped(project)                                                                    -> list[RuleSkipped]
    await reader.similar(issue, limit=10)                                                                  -> SimilarIssues
    await reader.project_of(issue)                                                                         -> int

`project` is its number, `issue` sixteen hexadecimal digits, `event` a uuid as text. `start` and `end` are Unix milliseconds of the
event's time, `start` included and `end` not; without them a range begins at the full hour 14 days ago and has no end. Issues that
were merged are one: each method takes the id of any of them. Answers are the structs of `answers`; `msgspec.json.encode` gives the
body. Each method may raise BadQuery, NotFound, QueryTooExpensive and StorageUnavailable, those for one event
DamagedPayload, all of them ReadError.
"""

from storage.reader.answers import Interval, Sort
from storage.reader.errors import (
    BadQuery,
    DamagedPayload,
    NotFound,
    QueryTooExpensive,
    ReadError,
    StorageUnavailable,
)
from storage.reader.execute import Limits
from storage.reader.reader import Reader

__all__ = [
    "BadQuery",
    "DamagedPayload",
    "Interval",
    "Limits",
    "NotFound",
    "QueryTooExpensive",
    "ReadError",
    "Reader",
    "Sort",
    "StorageUnavailable",
]
