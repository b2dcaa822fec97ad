"""Responses of the read API (contract, section 4). Times are ISO 8601 in UTC with milliseconds."""

from typing import Any, Final, Literal

from msgspec import Raw, Struct

Sort = Literal["lastSeen", "firstSeen", "events", "users", "trend", "priority"]
Interval = Literal["minute", "hour", "day"]


class KeyWarning(Struct, frozen=True):
    """A key of the query that no event of the project has, and the most similar known keys."""

    key: str
    nearest: list[str]


class Issue(Struct, frozen=True, rename="camel", kw_only=True):
    """An issue. `events` and `users` are for the requested range and query, the totals for its lifetime.

    `escalated_at` is when its rate last rose far above its own past. `trend` has 24 hourly or 14 daily counts
    of the matching events; the last count is for the end of the range. `title` is the one that pages show: type
    and message on one line.
    """

    id: str
    project_id: str
    title: str
    error_type: str
    message: str
    culprit: str
    status: str
    regressed: bool
    escalated_at: str | None
    platform: str
    first_seen: str
    last_seen: str
    events: int
    users: int
    total_events: int
    total_users: int
    first_release: str
    last_release: str
    environments: list[str]
    assignee: str | None
    resolved_in: str | None
    ignore_until: dict[str, Any] | None
    fingerprints: list[str]
    trend: list[int]


class CountedIssue(Issue, frozen=True, rename="camel", kw_only=True):
    """An issue, with warnings about the query that it was counted by."""

    warnings: list[KeyWarning] = []


class IssuePage(Struct, frozen=True, rename="camel"):
    """A page of issues; `next_cursor` is null at the end. Here and below, `warnings` are about the query.

    `offset` issues are on the pages before. `total` is the number of all, as the first page found it; with
    `total_is_bound` there are at least so many.
    """

    issues: list[Issue]
    next_cursor: str | None
    warnings: list[KeyWarning] = []
    offset: int = 0
    total: int = 0
    total_is_bound: bool = False


class EventRow(Struct, frozen=True, rename="camel", kw_only=True):
    """An event in a list. `time` is the event's time (contract, section 2, point 10); an absent field is empty."""

    id: str
    issue_id: str
    time: str
    received_at: str
    error_type: str
    message: str
    release: str
    environment: str
    platform: str
    kind: str
    os: str
    os_version: str
    model: str
    locale: str
    sdk: str
    user: str
    tags: dict[str, str]


class EventPage(Struct, frozen=True, rename="camel"):
    """A page of events, newest first; `next_cursor` is null at the end."""

    events: list[EventRow]
    next_cursor: str | None
    warnings: list[KeyWarning] = []


class GroupingOf(Struct, frozen=True):
    """Why an event has its fingerprint: version, rule and readable parts; all events of the fingerprint share them."""

    version: str
    rule: str
    parts: list[str]


class MergedBy(Struct, frozen=True):
    """Who merged an event's fingerprint into its issue, and when."""

    by: str
    at: str


class ResolvedError(Struct, frozen=True):
    """The event's `error` with the frames that source maps resolve; null if they resolve none.

    `problems` say why frames stay as they were sent.
    """

    error: Raw | None
    problems: list[str]


class EventDetail(Struct, frozen=True, rename="camel", kw_only=True):
    """One event. `event` holds the bytes as sent; it is null after the payload's shorter retention.

    The previous and next events are in the same issue, by the event's time. `merged` is the merge that
    brought the event's fingerprint into the issue; null if the fingerprint is the issue's own or the merge is
    unknown. `resolved` is null in a project without source maps.
    """

    event: Raw | None
    event_id: str
    project_id: str
    issue_id: str
    fingerprint: str
    time: str
    received_at: str
    sdk: str
    previous_event_id: str | None
    next_event_id: str | None
    grouping: GroupingOf
    merged: MergedBy | None = None
    resolved: ResolvedError | None = None


class IssueSource(Struct, frozen=True):
    """Where an issue's newest event was, by source maps: `FUNCTION in FILE:LINE`, and the line's text."""

    culprit: str
    line: str


NO_SOURCE: Final = IssueSource("", "")
ArtifactKind = Literal["sourceMap", "r8"]


class ArtifactLink(Struct, frozen=True):
    """A file of a release, and the digest of its map."""

    release: str
    path: str
    kind: ArtifactKind
    digest: str


class Artifact(Struct, frozen=True, rename="camel", kw_only=True):
    """An uploaded source map of the file `path` of a release, or a mapping of R8.

    `stored_bytes` is its compressed size. `debug_id` is empty without one.
    """

    release: str
    path: str
    kind: ArtifactKind
    debug_id: str
    digest: str
    bytes: int
    stored_bytes: int
    uploaded_at: str
    expires_at: str


class Sample(Struct, frozen=True, rename="camel", kw_only=True):
    """A complete past event, for tests of grouping rules. `received_ms` is Unix ms."""

    event: Raw
    issue_id: str
    fingerprint: str
    sdk: str
    received_ms: int


class TagValue(Struct, frozen=True):
    """A value and the number of events that have it."""

    value: str
    events: int


class TagFacet(Struct, frozen=True):
    """A key with its most frequent values; `distinct` counts all values."""

    key: str
    distinct: int
    values: list[TagValue]


class TagFacets(Struct, frozen=True, rename="camel"):
    """Keys, the most frequent first. If `sampled`, only the newest `sample_events` events are counted."""

    tags: list[TagFacet]
    sampled: bool
    sample_events: int
    warnings: list[KeyWarning] = []


class TagValues(Struct, frozen=True):
    """Completion: values that begin with the prefix, the most frequent first."""

    values: list[TagValue]


class Keys(Struct, frozen=True):
    """Completion: keys that begin with the prefix, the most frequent first."""

    keys: list[str]


class Point(Struct, frozen=True):
    """Events and distinct users of the interval that starts at `time`."""

    time: str
    events: int
    users: int


class Series(Struct, frozen=True):
    """A point for each interval of the range, including empty ones. `interval` is `minute`, `hour` or `day`, in UTC."""

    series: list[Point]
    interval: Interval
    warnings: list[KeyWarning] = []


class Release(Struct, frozen=True, rename="camel", kw_only=True):
    """A release with counts of the stored events."""

    release: str
    first_seen: str
    last_seen: str
    events: int
    new_issues: int
    regressions: int


Verdict = Literal["new", "gone", "worse", "better", "same"]


class ComparedIssue(Struct, frozen=True, rename="camel", kw_only=True):
    """An issue in two releases: its events in each, and the verdict by their share of all."""

    id: str
    error_type: str
    message: str
    status: str
    before: int
    after: int
    verdict: Verdict


class ReleaseComparison(Struct, frozen=True, rename="camel", kw_only=True):
    """Two releases, their stored events and their issues."""

    before_release: str
    after_release: str
    before: int
    after: int
    issues: list[ComparedIssue]


class Releases(Struct, frozen=True, rename="camel"):
    """Releases ordered by their first event, newest first."""

    releases: list[Release]
    next_cursor: str | None


class RuleSkipped(Struct, frozen=True):
    """The approximate number of events for which a grouping rule was skipped.

    The rule is too expensive (`tooExpensive`) or it `failed`.
    """

    rule: str
    kind: str
    events: int


class IssuePart(Struct, frozen=True):
    """A fingerprint of a merged issue, with the texts of the issue that it was.

    `events` is None if nothing is stored of it.
    """

    fingerprint: str
    error_type: str
    message: str
    culprit: str
    events: int | None = None


class RevokedTokenCount(Struct, frozen=True):
    """Requests with a revoked token, of which `token` has the last characters.

    `last_at` is the minute of the last request.
    """

    token: str
    sdk: str
    count: int
    last_at: str


class OutcomeExample(Struct, frozen=True):
    """The response to the sender of a refused event, with its release and id; `at` is the minute."""

    at: str
    text: str


class OutcomeCount(Struct, frozen=True, omit_defaults=True):
    """Events or requests with an outcome. `time` is the start of the interval, or null without intervals.

    Without intervals, `example` is the newest one of a refusal, if there is any.
    """

    time: str | None
    outcome: str
    sdk: str
    reason: str
    count: int
    example: OutcomeExample | None = None


class OutcomeSeries(Struct, frozen=True):
    """Counts by interval, outcome, SDK and reason, in this order."""

    outcomes: list[OutcomeCount]


class ActivityRow(Struct, frozen=True, rename="camel"):
    """One change; `data` depends on `kind`, `issue_id` is the changed issue: this one, or one merged into it."""

    id: str
    kind: str
    by: str
    at: str
    data: Raw
    issue_id: str


class ActivityPage(Struct, frozen=True, rename="camel"):
    """A page of changes, newest first; `next_cursor` is null at the end."""

    activity: list[ActivityRow]
    next_cursor: str | None


class ChangeRow(Struct, frozen=True, rename="camel"):
    """Who changed what; `projectId` is 0 for a sign-in.

    `before` and `after` are JSON with the changed fields, cut at 2,000 characters; empty where there are none.
    """

    id: str
    project_id: str
    kind: str
    by: str
    via: str
    at: str
    before: str
    after: str


class ChangePage(Struct, frozen=True, rename="camel"):
    """A page of the record of changes, newest first; `next_cursor` is null at the end."""

    changes: list[ChangeRow]
    next_cursor: str | None


class Similar(Struct, frozen=True, rename="camel", kw_only=True):
    """An issue that may have the same cause as another.

    A weighted `share` (0 to 1) of the words of the grouping parts is the same; the parts `shared` are equal.
    """

    id: str
    error_type: str
    message: str
    culprit: str
    status: str
    last_seen: str
    total_events: int
    share: float
    shared: list[str]
    reason: str


class SimilarIssues(Struct, frozen=True):
    """Similar issues, the most similar first."""

    similar: list[Similar]
