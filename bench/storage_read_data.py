"""Events in any number with the skew of real ones, made by the server itself and inserted as the writer inserts them.

50 projects, of which the largest has 26 % of all events and the second 7 %; 250,000 issues, the most frequent of a project with
some 4 % of its events; ten tags, of which one has 100,000 values; 200,000 users a project; 30 days, in the order of time.
"""

import time
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from schemas.ids import issue_id
from schemas.payload import compress
from storage.client import Client, scalar

PROJECTS: Final = 50
DAYS: Final = 30
_STEP: Final = 500_000
_LENGTH: Final = DAYS * 86_400_000
_TABLES: Final = ("issue_day", "issue_day_er", "issue_hour", "project_hour", "tag_day", "events", "payloads")
WORDS: Final = [
    "account",
    "action",
    "active",
    "address",
    "agent",
    "alert",
    "amount",
    "answer",
    "array",
    "asset",
    "attempt",
    "avatar",
    "backup",
    "badge",
    "balance",
    "banner",
    "basket",
    "batch",
    "billing",
    "binding",
    "block",
    "body",
    "bookmark",
    "boundary",
    "branch",
    "bridge",
    "browser",
    "bucket",
    "budget",
    "buffer",
    "build",
    "bundle",
    "button",
    "cache",
    "calendar",
    "callback",
    "camera",
    "campaign",
    "canvas",
    "card",
    "cart",
    "catalog",
    "category",
    "channel",
    "chart",
    "checkout",
    "child",
    "choice",
    "chunk",
    "claim",
    "client",
    "clip",
    "clock",
    "cloud",
    "cluster",
    "code",
    "collection",
    "color",
    "column",
    "command",
    "comment",
    "commit",
    "company",
    "component",
    "config",
    "connection",
    "consent",
    "contact",
    "container",
    "content",
    "context",
    "control",
    "cookie",
    "counter",
    "country",
    "coupon",
    "course",
    "credit",
    "currency",
    "cursor",
    "customer",
    "dashboard",
    "database",
    "deadline",
    "debit",
    "decoder",
    "delivery",
    "deploy",
    "device",
    "dialog",
    "digest",
    "discount",
    "display",
    "document",
    "domain",
    "download",
    "draft",
    "driver",
    "duration",
    "editor",
    "element",
    "email",
    "encoder",
    "endpoint",
    "engine",
    "entry",
    "envelope",
    "error",
    "estimate",
    "event",
    "exchange",
    "export",
    "factory",
    "feature",
    "feed",
    "field",
    "file",
    "filter",
    "fixture",
    "flag",
    "folder",
    "font",
    "footer",
    "form",
    "format",
    "frame",
    "gallery",
    "gateway",
    "gesture",
    "graph",
    "grid",
    "group",
    "guest",
    "handler",
    "header",
    "health",
    "history",
    "holder",
    "hook",
    "host",
    "icon",
    "identity",
    "image",
    "import",
    "index",
    "inbox",
    "input",
    "instance",
    "integer",
    "interval",
    "inventory",
    "invite",
    "invoice",
    "item",
    "job",
    "journal",
    "kernel",
    "key",
    "keyboard",
    "label",
    "language",
    "launch",
    "layer",
    "layout",
    "ledger",
    "library",
    "license",
    "limit",
    "link",
    "list",
    "listener",
    "loader",
    "location",
    "lock",
    "login",
    "logout",
    "loop",
    "mailbox",
    "manifest",
    "map",
    "market",
    "matrix",
    "member",
    "memory",
    "menu",
    "merchant",
    "message",
    "method",
    "metric",
    "migration",
    "mirror",
    "mobile",
    "module",
    "monitor",
    "mutation",
    "network",
    "node",
    "notice",
    "number",
    "object",
    "offer",
    "offset",
    "option",
    "order",
    "origin",
    "outcome",
    "output",
    "owner",
    "package",
    "page",
    "panel",
    "parameter",
    "parcel",
    "parser",
    "partner",
    "password",
    "patch",
    "path",
    "payment",
    "payout",
    "permission",
    "phone",
    "pipeline",
    "pixel",
    "plan",
    "player",
    "plugin",
    "pointer",
    "policy",
    "pool",
    "portal",
    "position",
    "price",
    "printer",
    "priority",
    "process",
    "product",
    "profile",
    "promise",
    "promo",
    "property",
    "protocol",
    "provider",
    "proxy",
    "purchase",
    "query",
    "queue",
    "quota",
    "quote",
    "range",
    "rating",
    "reader",
    "receipt",
    "record",
    "redirect",
    "refund",
    "region",
    "registry",
    "relay",
    "reminder",
    "render",
    "repeat",
    "report",
    "request",
    "reset",
    "resource",
    "response",
    "result",
    "retry",
    "return",
    "review",
    "route",
    "router",
    "rule",
    "runtime",
    "sample",
    "scanner",
    "schedule",
    "schema",
    "scope",
    "screen",
    "script",
    "search",
    "section",
    "segment",
    "sender",
    "sensor",
    "series",
    "server",
    "service",
    "session",
    "setting",
    "shape",
    "shard",
    "shipment",
    "shop",
    "signal",
    "signature",
    "sketch",
    "slider",
    "slot",
    "snapshot",
    "socket",
    "source",
    "splash",
    "sprite",
    "stage",
    "state",
    "status",
    "stock",
    "store",
    "stream",
    "string",
    "style",
    "subject",
    "summary",
    "support",
    "survey",
    "switch",
    "symbol",
    "sync",
    "system",
    "table",
    "target",
    "task",
    "tax",
    "team",
    "template",
    "tenant",
    "terminal",
    "theme",
    "thread",
    "ticket",
    "timer",
    "title",
    "toggle",
    "token",
    "tooltip",
    "topic",
    "total",
    "trace",
    "track",
    "transfer",
    "trigger",
    "type",
    "unit",
    "update",
    "upload",
    "url",
    "user",
    "utility",
    "vault",
    "vector",
    "vendor",
    "version",
    "video",
    "view",
    "viewport",
    "visit",
    "voucher",
    "wallet",
    "warehouse",
    "webhook",
    "widget",
    "window",
    "wizard",
    "worker",
    "workflow",
    "wrapper",
    "zone",
]
"""Words of messages, paths and names."""

_EVENTS: Final = """
INSERT INTO ingest
WITH
    {words:Array(String)} AS words, length(words) AS w,
    cityHash64(number, 1) AS h1, cityHash64(number, 2) AS h2, cityHash64(number, 3) AS h3, cityHash64(number, 4) AS h4,
    (h1 % 1000000) / 1000000 AS u1, (h2 % 1000000) / 1000000 AS u2,
    toUInt32(1 + floor(50 * pow(u1, 2.9))) AS project,
    toUInt64(floor(20000 / sqrt(project) * pow(u2, 3))) AS rank,
    cityHash64(project, rank) AS issue,
    words[1 + issue % w] AS a, words[1 + intDiv(issue, 1000) % w] AS b, words[1 + intDiv(issue, 1000000) % w] AS c,
    fromUnixTimestamp64Milli({since:Int64} + toInt64(number * {step:Float64}), 'UTC') AS at,
    h4 % 4611686018427387904 AS low,
    ['javascript', 'ios', 'android'][1 + issue % 3] AS system
SELECT
    project, issue, at,
    bitShiftLeft(toUInt128(toUnixTimestamp64Milli(at)), 80) + bitShiftLeft(toUInt128(7), 76) + bitShiftLeft(toUInt128(2), 62) + low,
    at + INTERVAL 1 SECOND, concat('app@1.', toString(h2 % 20), '+', toString(h2 % 20)), ['prod', 'prod', 'prod', 'staging', 'dev'][1 + h3 % 5],
    system, 'error', system, toString(10 + h1 % 9), concat('model', toString(h4 % 200)), ['en-US', 'de-DE', 'pt-BR'][1 + h1 % 3],
    'browser/0.1.0', concat('u', toString(h3 % 200000)), 1 + h3 % 200000,
    concat(['Type', 'Range', 'Network', 'IO', 'Timeout', 'State', 'Parse', 'Access'][1 + issue % 8], ['Error', 'Exception'][1 + project % 2]),
    concat(
        ['Cannot read', 'Failed to load', 'Unexpected', 'No such', 'Timeout in'][1 + intDiv(issue, 7) % 5], ' ', a, ' ', b, ' while ',
        ['saving', 'loading', 'closing', 'opening'][1 + intDiv(issue, 11) % 4], ' ', c,
        if(issue % 2 = 0, concat(' ', toString(h4 % 1000000)), '')),
    arrayDistinct([concat('src/', a, '/', b, '.ts'), concat('src/', c, '/index.ts'), 'vendor/react.js', 'vendor/runtime.js']),
    arrayDistinct([concat(a, initcap(b)), concat('on', initcap(c)), 'render', 'dispatch', 'flush']),
    map('feature', concat('f', toString(h1 % 40)), 'tier', ['free', 'pro', 'team'][1 + h2 % 3], 'logger', concat('l', toString(h3 % 100)),
        'level', ['E', 'W', 'I'][1 + h4 % 3], 'region', concat('r', toString(h1 % 12)), 'build', toString(h2 % 500),
        'session', toString(h3 % 100000), 'screen', concat('s', toString(h4 % 60)), 'ab', toString(h1 % 4), 'carrier', concat('c', toString(h2 % 30))),
    'v1', 'stack', 90, 90, unhex({payload:String})
FROM numbers({first:UInt64}, {many:UInt64})
"""
_SETTINGS: Final = {
    "max_insert_threads": 1,
    "max_threads": 2,
    "insert_deduplicate": 0,
    "max_insert_block_size": _STEP,
    "min_insert_block_size_rows": _STEP,
    "min_insert_block_size_bytes": 1 << 30,
    "max_memory_usage": 3 << 30,
}
_ISSUES: Final = """
INSERT INTO issues (project_id, issue_id, fingerprints, error_type, message, culprit, platform, status, regressed, first_seen,
    last_seen, events, users, first_release, last_release, environments, releases, assignee, last_event, grouping_version, grouping_rule,
    grouping_parts, version)
SELECT project_id, any(issue), [fingerprint], any(error_type), any(message), any(functions[1]), any(platform),
    ['open', 'open', 'resolved', 'ignored'][1 + fingerprint % 4], fingerprint % 10 = 0, min(ts), max(ts), count(), uniq(user_hash),
    min(release), max(release), groupUniqArray(environment), groupUniqArray(20)(release), if(fingerprint % 5 = 0, 'ann', ''),
    max(id), 'v1', 'stack', any(functions), 1
FROM events INNER JOIN bench_issues USING (project_id, fingerprint) WHERE project_id = {project:UInt32} GROUP BY project_id, fingerprint
"""


class Built(Struct, frozen=True):
    """What was made, and how long it took."""

    events: int
    seconds: float


def build(client: Client, events: int, now_ms: int) -> Built:
    """Fill an empty database with so many events of the 30 days before `now_ms`, and their issues; one that was left half full is filled on.

    Raises ValueError for any other.
    """
    have, since = client.query("SELECT count(), toUnixTimestamp64Milli(min(ts)) FROM events").result_rows[0]
    if have > events or (have % _STEP and have != events) or scalar(client, "SELECT count() FROM issues"):
        raise ValueError(f"the database has {have:,} events: name an empty one, or ask for as many")
    since = int(since) if have else now_ms - _LENGTH
    began = time.perf_counter()
    for first in range(have, events, _STEP):
        client.command(_EVENTS, parameters=_batch(first, events, since), settings=_SETTINGS)
        _tell(first + _STEP, events, time.perf_counter() - began)
    add_issues(client)
    return Built(events - have, time.perf_counter() - began)


def add_issues(client: Client) -> None:
    """The issue that each fingerprint opened."""
    found = client.query("SELECT DISTINCT project_id, fingerprint FROM issue_day").result_rows
    client.command(
        "CREATE TABLE bench_issues (project_id UInt32, fingerprint UInt64, issue UInt64) ENGINE = Memory"
    )
    client.insert("bench_issues", [[project, of, issue_id(project, of)] for project, of in found])
    for project in range(1, PROJECTS + 1):
        client.command(_ISSUES, parameters={"project": project}, settings=_SETTINGS)
    client.command("DROP TABLE bench_issues")


def settle(client: Client, seconds: float) -> None:
    """Wait until the parts of every table are merged as far as the server merges by itself, at most so long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and scalar(client, "SELECT count() FROM system.merges"):
        time.sleep(1)


def sizes(client: Client) -> Iterator[tuple[str, int, int, int]]:
    """Table, parts, rows and bytes on disk."""
    rows = client.query(
        "SELECT table, count(), sum(rows), sum(bytes_on_disk) FROM system.parts"
        " WHERE active AND database = currentDatabase() GROUP BY table ORDER BY 4 DESC"
    ).result_rows
    yield from ((str(table), int(parts), int(many), int(size)) for table, parts, many, size in rows)


def _batch(first: int, events: int, since: int) -> dict[str, object]:
    return {
        "words": list(WORDS),
        "since": since,
        "step": _LENGTH / events,
        "first": first,
        "many": min(_STEP, events - first),
        "payload": compress(b'{"error":{"type":"TypeError","message":"bench","stack":[]}}').hex(),
    }


def _tell(done: int, events: int, seconds: float) -> None:
    if done % 5_000_000 == 0 and done < events:
        print(f"{done:,} events in {seconds:.0f} s")
