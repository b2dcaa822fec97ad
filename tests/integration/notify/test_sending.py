"""Messages of channels over the network, and their errors."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from click.testing import CliRunner, Result
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from cli.__main__ import svc
from notify.channels import Channel, NotDelivered, channel_settings, open_channels
from notify.message_sender import PAUSES_SECONDS, MessageSender
from notify.notification_fold import Outgoing
from notify.notify_metrics import NotifyMetrics
from notify.readable_message import ReadableMessage, written
from notify.rule_queue import RuleDecision
from schemas.notifications import CAUSES, DeliveryRecord, NotificationRule
from tests.eventually import eventually
from tests.integration.notify.mail_server import MailServer
from tests.unit.cli.test_issue_text import ISSUE
from tests.unit.notify.histories import START, cause
from tests.webhook_receiver import SECRET, Receiver

RULE = NotificationRule("a" * 16, "all", CAUSES, ("one",), to=("ann@example.com", "bob@example.com"))


def outgoing(number: int = 1, attempts: int = 0) -> Outgoing:
    return Outgoing(RuleDecision(RULE, (cause(number),), START), "one", attempts)


def message(trend: Sequence[int] = ISSUE.trend) -> ReadableMessage:
    decision = outgoing().decision
    issue = replace(ISSUE, trend=list(trend))
    return written(decision, "shop", {decision.causes[0].issue: issue}, "https://svc.example.com")


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def channel(http: aiohttp.ClientSession, **settings: str) -> Channel:
    return open_channels(channel_settings(json.dumps({"one": settings})), http)["one"]


async def test_a_mail_goes_to_each_recipient_of_the_rule(http: aiohttp.ClientSession) -> None:
    async with MailServer().listening() as server:
        url = f"mailto://127.0.0.1:{server.port}?from=svc@example.com&to={{to}}"
        await channel(http, apprise=url).send(message())
        assert sorted(one for recipients, _ in server.mails for one in recipients) == list(RULE.to)
        subject, text = server.texts()[0]
        assert subject == message().title
        assert text.strip().splitlines() == message().body.splitlines()


async def test_a_mail_that_is_refused_says_why(http: aiohttp.ClientSession) -> None:
    async with MailServer().listening() as server:
        url = f"mailto://127.0.0.1:{server.port}?from=svc@example.com&to=x@refused.example"
        with pytest.raises(NotDelivered):
            await channel(http, apprise=url).send(message())
        assert server.mails == []
    with pytest.raises(NotDelivered, match=r"\w"):
        await channel(http, apprise=url).send(message())


async def test_a_webhook_is_signed_and_has_its_id(http: aiohttp.ClientSession) -> None:
    async with Receiver().listening() as receiver:
        await channel(http, webhook=receiver.url, secret=SECRET).send(message())
        assert receiver.messages == {"cause-1": json.loads(json.dumps(message().data))}


@pytest.mark.parametrize("status", [301, 400, 500])
async def test_an_answer_that_is_no_success_is_no_delivery_and_names_no_secret(
    http: aiohttp.ClientSession, status: int
) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": "/elsewhere"})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    with pytest.raises(NotDelivered, match=f"^127.0.0.1:{port} answered {status}$"):
        await channel(http, webhook=f"http://user:pass@127.0.0.1:{port}/token", secret="s").send(message())
    await runner.cleanup()
    with pytest.raises(NotDelivered) as failed:
        await channel(http, webhook=f"http://127.0.0.1:{port}/token").send(message())
    assert "token" not in str(failed.value)


async def test_an_alert_has_the_labels_by_which_alertmanager_knows_it(http: aiohttp.ClientSession) -> None:
    taken: list[Any] = []

    async def take(request: web.Request) -> web.Response:
        taken.extend(await request.json())
        return web.Response()

    app = web.Application()
    app.router.add_post("/api/v2/alerts", take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    sent = message([0, 1, 2, 4])
    await channel(http, alertmanager=f"http://127.0.0.1:{runner.addresses[0][1]}/").send(sent)
    await runner.cleanup()
    issue = message().data["causes"][0]["issue"]
    assert taken[0]["labels"] == {
        "alertname": "SvcCreated", "project": "shop", "issue": issue["id"], "cause": "cause-1", "rule": "all"
    }  # fmt: skip
    assert taken[0]["generatorURL"] == issue["url"]
    assert taken[0]["annotations"] == {"summary": sent.title, "description": sent.body}
    assert "last 24 hours ▁▃▅█" in sent.body.splitlines()


class Failing(Channel):
    """Fails, or never answers."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.sent = 0
        self._hangs = hangs

    async def send(self, _message: ReadableMessage) -> None:
        self.sent += 1
        if self._hangs:
            await asyncio.Event().wait()
        raise NotDelivered("no")


def sender(channels: dict[str, Channel], reports: list[DeliveryRecord]) -> MessageSender:
    async def write(_one: Outgoing) -> ReadableMessage:
        return message()

    async def report(record: DeliveryRecord) -> None:
        reports.append(record)

    return MessageSender(channels, write, report, lambda: START, 0.05, NotifyMetrics(CollectorRegistry()))


async def test_a_message_that_fails_is_sent_again_later_and_later_and_given_up_at_last() -> None:
    reports: list[DeliveryRecord] = []
    one = sender({"one": Failing()}, reports)
    for attempts in range(len(PAUSES_SECONDS) + 1):
        waiting = outgoing(attempts=attempts)
        one.send_due({waiting.id: waiting})
        # While it is being sent, and until its outcome is in the log, it isn't sent again.
        one.send_due({waiting.id: waiting})
        await eventually(lambda: len(reports) == attempts + 1)  # noqa: B023
        one.forget(waiting.id)
    assert [(record.next_ms - START) // 1000 for record in reports[:-1]] == list(PAUSES_SECONDS)
    assert (reports[-1].next_ms, reports[-1].delivered, reports[-1].attempts) == (
        0,
        False,
        len(PAUSES_SECONDS) + 1,
    )
    assert PAUSES_SECONDS[-1] == 24 * 3600


async def test_a_channel_that_hangs_or_is_missing_has_a_reason_and_delays_no_other() -> None:
    reports: list[DeliveryRecord] = []
    hanging = Failing(hangs=True)
    one = sender({"one": hanging}, reports)
    missing = Outgoing(outgoing(99).decision, "other")
    many = {message.id: message for message in map(outgoing, range(20))}
    one.send_due({**many, missing.id: missing})
    await eventually(lambda: len(reports) == 21)
    assert reports[0].error == "SVC_NOTIFY_CHANNELS has no channel other"
    assert {record.error for record in reports[1:]} == {"no answer in time"}
    await one.stop()


async def test_messages_wait_until_they_are_due() -> None:
    reports: list[DeliveryRecord] = []
    one, waiting = sender({"one": Failing()}, reports), outgoing()
    later = Outgoing(waiting.decision, "one", 1, START + 1)
    one.send_due({later.id: later})
    await asyncio.sleep(0)
    assert reports == []


async def test_the_command_sends_a_test_message_and_says_why_it_is_not_taken(tmp_path: Path) -> None:
    async with Receiver().listening() as receiver:
        channels = {
            "hook": {"webhook": receiver.url, "secret": SECRET},
            "gone": {"webhook": "http://127.0.0.1:1/"},
        }
        env = {"SVC_KAFKA_BOOTSTRAP": "127.0.0.1:1", "SVC_NOTIFY_CHANNELS": json.dumps(channels)}

        async def run(channel: str) -> Result:
            words = ["--data-dir", str(tmp_path), "notify", "test", channel]
            return await asyncio.to_thread(CliRunner(env=env).invoke, svc, words)

        assert (await run("hook")).output == "hook took the message.\n"
        [sent] = receiver.messages.values()
        assert sent["causes"][0]["issue"]["errorType"] == "TestMessage"
        assert "not delivered: 127.0.0.1:1: " in (await run("gone")).output
        assert "it has: gone, hook" in (await run("other")).output
