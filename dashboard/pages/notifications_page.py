"""A project's notifications: its rules to edit, test and save, and the undelivered messages."""

import asyncio
import secrets
from typing import Any, Final

import msgspec
from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from broker.errors import KafkaError
from dashboard.api.notifications_api import (
    DAYS,
    STORED_DAYS,
    Preview,
    Undelivered,
    preview_of,
    read_log,
    undelivered_of,
)
from dashboard.auth.auth import read_form
from dashboard.dependencies import State, state_of
from dashboard.http.http_errors import HttpError, http_error_of, invalid, unavailable
from dashboard.http.responses import redirect
from dashboard.pages.notification_form import TypedRule, checked, read_typed
from dashboard.pages.render import page
from dashboard.requested_project import edit_project, project_of
from dashboard.view.notification_rules import CHOICES, WEEKDAYS, RuleSentence, sentence_of
from notify.readable_message import KINDS
from schemas.errors import Detail, ProjectsUnavailable
from schemas.notifications import ChannelTestRecord, DeliveryRecord, NotificationRecord, NotificationRule
from schemas.projects import Project

_WRITE_SECONDS: Final = 5.0
MAX_SHOWN: Final = 50
"""Messages that a page lists; the read API has more."""
_PATTERNS: Final = {
    "quiet.start": "a time such as 22:00",
    "quiet.end": "a time such as 07:00",
    "channels": "names of letters, digits and . _ - alone",
}
"""Descriptions of the valid values of fields that are checked by a pattern."""
_EMPTY: Final[dict[str, Any]] = {
    **dict.fromkeys(("id", "name", "query", "users", "digestMinutes", "mostPerHour"), ""),
    **dict.fromkeys(("causes", "channels", "to"), ()),
    "quiet": {},
    "withoutContent": False,
    "enabled": True,
}
_NEW: Final = {"causes": ("created", "regressed")}


class RuleCard(Struct, frozen=True, kw_only=True):
    """A rule on the page: its input, its sentence if it has no faults, and its faults by field."""

    fields: dict[str, Any]
    sentence: RuleSentence | None = None
    errors: dict[str, list[str]] = {}
    is_changed: bool = False
    is_removed: bool = False


class NotificationsLog(Struct, frozen=True):
    """The project's records in the log, or the reason why they can't be read."""

    records: list[NotificationRecord]
    undelivered: Undelivered
    failure: HttpError | None = None


async def show_notifications(request: web.Request) -> web.Response:
    """The saved rules, and the undelivered messages."""
    project = project_of(request)
    cards = [
        RuleCard(fields=msgspec.to_builtins(rule), sentence=sentence_of(rule))
        for rule in project.notification_rules
    ]
    log = await _log(state_of(request), project)
    return _page(request, project, cards, log, saved="saved" in request.query)


async def change_notifications(request: web.Request) -> web.Response:
    """Save the typed rules, or show their test on past activity; with faults show them and change nothing."""
    state, project, form = state_of(request), project_of(request), await read_form(request)
    typed = read_typed(await request.post())
    if form.get("do") not in {"preview", "save"}:
        raise invalid("do", "the form is incomplete: reload the page")
    inputs, details = checked([one.fields for one in typed if not one.is_removed])
    rules = [one.rule for one in inputs]
    failure = None
    if form["do"] == "save" and not details:
        try:
            await edit_project(request, lambda old: replace(old, notification_rules=tuple(rules)))
            return redirect(f"/projects/{project.id}/notifications?saved=1")
        except ProjectsUnavailable as error:
            failure = http_error_of(error)
    log = await _log(state, project)
    cards = _cards(typed, rules, details, project)
    if details:
        return _page(request, project, cards, log, details=details, status=400)
    if failure or log.failure:
        return _page(request, project, cards, log, failure=failure, tried=form["do"] == "preview", status=503)
    tried = preview_of(log.records, project.id, rules, state.dependencies.now_ms())
    names = {rule.id: rule.name for rule in rules}
    return _page(request, project, cards, log, tried=True, preview=tried, names=names)


async def test_channel(request: web.Request) -> web.Response:
    """Ask `svc notify` for a test message, once for each form; the page then shows the outcome."""
    state, project, form = state_of(request), project_of(request), await read_form(request)
    channel, key = form.get("channel", "")[:64], form.get("key", "")[:64]
    if not channel or not key.isalnum():
        raise invalid("channel", "the form is incomplete: reload the page")
    append = state.dependencies.notify
    if append is None:
        raise unavailable("notifications can't be sent here")
    to = tuple(form.get("to", "").replace(",", " ").split()[:50])
    try:
        async with asyncio.timeout(_WRITE_SECONDS):
            await append(ChannelTestRecord(state.dependencies.now_ms(), key, project.id, channel, to))
    except (KafkaError, OSError, TimeoutError) as error:
        raise unavailable("the test message can't be requested: Kafka doesn't answer") from error
    return redirect(f"/projects/{project.id}/notifications?tested={key}")


def _delivery(records: list[NotificationRecord], key: str) -> DeliveryRecord | None:
    """The outcome of the test message of this request; None while it waits."""
    found = (one for one in records if isinstance(one, DeliveryRecord))
    return next((one for one in found if one.message.endswith(f"/test-{key}")), None)


async def _log(state: State, project: Project) -> NotificationsLog:
    try:
        records = await read_log(state, STORED_DAYS)
    except HttpError as error:
        return NotificationsLog([], Undelivered([], []), error)
    return NotificationsLog(records, undelivered_of(records, project.id))


def _cards(
    typed: list[TypedRule], rules: list[NotificationRule], details: list[Detail], project: Project
) -> list[RuleCard]:
    """The typed rules as cards. `rules` and the faults count those that are not removed."""
    stored, left = {rule.id: rule for rule in project.notification_rules}, iter(enumerate(rules))
    cards = []
    for one in typed:
        if one.is_removed:
            cards.append(RuleCard(fields=one.fields, is_changed=True, is_removed=True))
            continue
        number, rule = next(left)
        if errors := _errors(f"rules[{number}].", details):
            cards.append(RuleCard(fields=one.fields, errors=errors, is_changed=True))
        else:
            is_changed = not _is_same(rule, stored)
            cards.append(RuleCard(fields=one.fields, sentence=sentence_of(rule), is_changed=is_changed))
    return cards


def _errors(start: str, details: list[Detail]) -> dict[str, list[str]]:
    """The faults of the rule whose paths begin so, by field."""
    errors: dict[str, list[str]] = {}
    for detail in details:
        if detail.field.startswith(start):
            field = detail.field.removeprefix(start).partition("[")[0]
            errors.setdefault(field, []).append(_in_words(field, detail.message))
    return errors


def _is_same(rule: NotificationRule, stored: dict[str, NotificationRule]) -> bool:
    """Whether the rule is stored like that. The order of checkboxes means nothing."""
    old = stored.get(rule.id)
    if old is None or {*old.causes} != {*rule.causes} or {*old.channels} != {*rule.channels}:
        return False
    return replace(rule, causes=old.causes, channels=old.channels) == old


def _in_words(field: str, message: str) -> str:
    if message == "required":
        return "choose or enter something"
    return f"expected {_PATTERNS[field]}" if message.startswith("must match") else message


def _page(
    request: web.Request,
    project: Project,
    cards: list[RuleCard],
    log: NotificationsLog,
    *,
    status: int = 200,
    saved: bool = False,
    details: list[Detail] | None = None,
    failure: HttpError | None = None,
    tried: bool = False,
    preview: Preview | None = None,
    names: dict[str, str] | None = None,
) -> web.Response:
    shown = [replace(card, fields=_EMPTY | card.fields) for card in (*cards, RuleCard(fields=_NEW))]
    response = page(
        request,
        "notifications.html",
        status,
        project=project,
        active="notifications",
        cards=shown,
        many=len(cards),
        saved=saved,
        has_errors=bool(details),
        general=[detail.message for detail in details or [] if not detail.field.startswith("rules[")],
        failure=failure,
        log_failure=log.failure,
        undelivered=log.undelivered.messages,
        channels=log.undelivered.channels,
        tried=tried,
        preview=preview,
        names=names or {},
        tested=request.query.get("tested", ""),
        delivery=_delivery(log.records, request.query.get("tested", "")),
        test_key=secrets.token_hex(16),
        most=MAX_SHOWN,
        choices=CHOICES,
        kinds=KINDS,
        weekdays=WEEKDAYS,
        days=DAYS,
        stored_days=STORED_DAYS,
    )
    if failed := failure or (log.failure if status == 503 else None):
        response.headers.update(failed.headers)
    return response
