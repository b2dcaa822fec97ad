"""Tokens for brokers with OAUTHBEARER, by OAuth 2.0's client credentials (RFC 6749, section 4.4)."""

import ssl
import time
from typing import Final
from urllib.parse import quote_plus

import aiohttp
import msgspec
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import SaslAuthenticationFailed
from msgspec import Struct

from schemas.settings import KafkaSettings

_SECONDS: Final = 10.0
_USED_SHARE: Final = 0.8
"""Of a token's life: a connection that begins with it must be accepted."""
_DEFAULT_LIFE_SECONDS: Final = 300.0


class TokenRefused(SaslAuthenticationFailed):  # type: ignore[misc]
    """No token was issued. A KafkaError, since a connection to a broker fails by it."""


class _Issued(Struct):
    """The answer of the address (RFC 6749, section 5.1)."""

    access_token: str
    expires_in: float = _DEFAULT_LIFE_SECONDS


class AccessToken(AbstractTokenProvider):  # type: ignore[misc]
    """The current token; requests one if there is none or it expires soon.

    May be used from several event loops.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._url = settings.kafka_token_url
        credentials = [quote_plus(part) for part in (settings.kafka_username, settings.kafka_password)]
        self._headers = {"Authorization": aiohttp.encode_basic_auth(*credentials)}
        self._form = {"grant_type": "client_credentials"}
        if settings.kafka_token_scope:
            self._form["scope"] = settings.kafka_token_scope
        self._context = ssl.create_default_context()
        if settings.kafka_ca_file:
            self._context.load_verify_locations(settings.kafka_ca_file)
        self._token = ""
        self._ends = 0.0

    async def token(self) -> str:
        """Raises TokenRefused."""
        now = time.monotonic()
        if now >= self._ends:
            issued = await self._issued()
            self._token, self._ends = issued.access_token, now + _USED_SHARE * issued.expires_in
        return self._token

    async def _issued(self) -> _Issued:
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=self._headers) as session,
                session.post(self._url, data=self._form, ssl=self._context, allow_redirects=False) as answer,
            ):
                body = await answer.read()
                if answer.status != 200:
                    raise TokenRefused(f"{self._url} gives no token: status {answer.status}")
                return msgspec.json.decode(body, type=_Issued)
        except msgspec.DecodeError:
            raise TokenRefused(f"{self._url} gives no token: its answer has none") from None
        except (TimeoutError, aiohttp.ClientError) as error:
            raise TokenRefused(f"{self._url} gives no token: {str(error) or type(error).__name__}") from None
