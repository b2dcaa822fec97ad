"""The channels of a deployment: how a message leaves (`SVC_NOTIFY_CHANNELS`)."""

import asyncio
import hashlib
import hmac
import json
import logging
import os
import time
from collections.abc import Mapping
from typing import Final, Protocol
from urllib.parse import quote, urlsplit

import aiohttp
import apprise
import msgspec
from msgspec import Struct

from notify.readable_message import ReadableMessage
from schemas.errors import BadSetting

_ERROR_CHARS: Final = 300
_FORM: Final = '{"NAME": {"apprise": URL} or {"webhook": URL, "secret": TEXT} or {"alertmanager": URL}}'


class NotDelivered(Exception):
    """The channel didn't take the message; the text says why, without secrets."""


class ChannelSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """One of: a URL of apprise, `{to}` standing for recipients; a webhook with its secret; an Alertmanager."""

    apprise: str = ""
    webhook: str = ""
    secret: str = ""
    alertmanager: str = ""


class Channel(Protocol):
    """Sends messages."""

    async def send(self, message: ReadableMessage) -> None:
        """Send once. Raises NotDelivered."""


class AppriseChannel(Channel):
    """Mail, chat and many others, by the library apprise: plain text, as long as the service takes it."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def send(self, message: ReadableMessage) -> None:
        await asyncio.to_thread(self._send, message)

    def _send(self, message: ReadableMessage) -> None:
        sender = apprise.Apprise()
        recipients = ",".join(quote(one, safe="@") for one in message.to)
        if not sender.add(self._url.replace("{to}", recipients)):
            raise NotDelivered("apprise doesn't know the channel's URL, or it lacks recipients")
        with apprise.LogCapture(level=logging.WARNING) as captured:  # type: ignore[no-untyped-call]
            taken = sender.notify(
                title=message.title,
                body=message.fitting(min(_room(service, message.title) for service in sender)),
                body_format=apprise.NotifyFormat.TEXT,
            )
            lines = captured.getvalue().strip().splitlines()
        if not taken:
            raise NotDelivered(lines[-1].rpartition(" - ")[2][:_ERROR_CHARS] if lines else "not taken")


class PostChannel(Channel):
    """Posts JSON. Any answer of 2xx is a delivery."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session

    async def _post(self, body: bytes, headers: Mapping[str, str]) -> None:
        try:
            async with self._session.post(
                self._url,
                data=body,
                headers={"Content-Type": "application/json", **headers},
                allow_redirects=False,
            ) as answer:
                if not 200 <= answer.status < 300:
                    raise NotDelivered(f"{_host(self._url)} answered {answer.status}")
        except TimeoutError:
            raise NotDelivered(f"{_host(self._url)} didn't answer in time") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # The error's own text may have the address.
            number = error.errno if isinstance(error, OSError) else None
            reason = os.strerror(number) if number else type(error).__name__
            raise NotDelivered(f"{_host(self._url)}: {reason}") from error


class WebhookChannel(PostChannel):
    """Posts a message's data.

    `Idempotency-Key` is its id. `Svc-Signature` is `t=SECONDS,v1=HEX`; HEX is the HMAC-SHA-256 of
    `SECONDS.BODY`.
    """

    def __init__(self, url: str, secret: str, session: aiohttp.ClientSession) -> None:
        super().__init__(url, session)
        self._secret = secret.encode()

    async def send(self, message: ReadableMessage) -> None:
        body = json.dumps(message.data, ensure_ascii=False, separators=(",", ":")).encode()
        headers = {"Idempotency-Key": message.id}
        if self._secret:
            seconds = str(int(time.time()))
            signed = hmac.new(self._secret, seconds.encode() + b"." + body, hashlib.sha256).hexdigest()
            headers["Svc-Signature"] = f"t={seconds},v1={signed}"
        await self._post(body, headers)


class AlertmanagerChannel(PostChannel):
    """Posts an alert for each cause, which ends by itself; Alertmanager recognizes a repeat by the alert's labels."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        super().__init__(f"{url.rstrip('/')}/api/v2/alerts", session)

    async def send(self, message: ReadableMessage) -> None:
        alerts = [
            {
                "labels": {
                    "alertname": f"Svc{cause['kind'][0].upper()}{cause['kind'][1:]}",
                    "project": message.data["project"]["name"],
                    "issue": cause["issue"]["id"],
                    "cause": cause["id"],
                    "rule": message.data["rule"]["name"],
                },
                "annotations": {"summary": message.title, "description": message.body},
                "startsAt": cause["at"],
                **({"generatorURL": cause["url"]} if cause["url"] else {}),
            }
            for cause in message.data["causes"]
        ]
        await self._post(json.dumps(alerts).encode(), {})


def channel_settings(text: str) -> dict[str, ChannelSettings]:
    """The channels of the setting, by name. Raises BadSetting."""
    if not text.strip():
        return {}
    try:
        found = msgspec.json.decode(text, type=dict[str, ChannelSettings])
    except msgspec.MsgspecError as error:
        raise BadSetting(f"SVC_NOTIFY_CHANNELS: {error}; expected {_FORM}") from None
    for name, one in found.items():
        if sum(map(bool, (one.apprise, one.webhook, one.alertmanager))) != 1 or (
            one.secret and not one.webhook
        ):
            raise BadSetting(f"SVC_NOTIFY_CHANNELS: {name!r}: expected {_FORM}")
        for url in (one.webhook, one.alertmanager):
            if url and (urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname):
                raise BadSetting(f"SVC_NOTIFY_CHANNELS: {name!r}: not an http or https address")
        if one.apprise and not apprise.Apprise().add(one.apprise.replace("{to}", "someone@example.com")):
            raise BadSetting(f"SVC_NOTIFY_CHANNELS: {name!r}: apprise doesn't know this URL")
    return found


def open_channels(
    settings: Mapping[str, ChannelSettings], session: aiohttp.ClientSession
) -> dict[str, Channel]:
    """A channel for each of the settings."""
    return {name: _channel(one, session) for name, one in settings.items()}


async def refusal_of(settings: ChannelSettings, message: ReadableMessage, seconds: float) -> str:
    """Why a channel doesn't take a message within so many seconds; empty if it does."""
    try:
        async with aiohttp.ClientSession() as session, asyncio.timeout(seconds):
            await _channel(settings, session).send(message)
    except TimeoutError:
        return f"no answer within {seconds:g} s"
    except NotDelivered as error:
        return str(error)
    return ""


def _channel(settings: ChannelSettings, session: aiohttp.ClientSession) -> Channel:
    if settings.webhook:
        return WebhookChannel(settings.webhook, settings.secret, session)
    if settings.alertmanager:
        return AlertmanagerChannel(settings.alertmanager, session)
    return AppriseChannel(settings.apprise)


def _room(service: apprise.NotifyBase, title: str) -> int:
    """The characters of a text that a service takes; one that knows no titles has the title in the text."""
    most = int(service.body_maxlen)
    return most if service.title_maxlen else max(2, most - len(title) - 2)


def _host(url: str) -> str:
    # The rest of a webhook's address may be a secret.
    return urlsplit(url).netloc.rpartition("@")[2]
