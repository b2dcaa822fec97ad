"""Automatic `net` breadcrumbs: one a round-trip, through each client, and none of the library's own."""

import http.client
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from ipaddress import IPv4Address
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
import requests

import svc
from tests.unit.svc.ingest import Ingest, ingest_server

Start = Callable[..., Ingest]


def net() -> list[dict[str, Any]]:
    return [crumb["data"] for crumb in svc.get_breadcrumbs() if crumb["type"] == "net"]


def by_urllib(url: str) -> None:
    with urllib.request.urlopen(url) as response:
        response.read()


def by_requests(url: str) -> None:
    with requests.Session() as session:
        session.get(url)


def by_http_client(url: str) -> None:
    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host)
    connection.request("GET", "/" + path)
    connection.getresponse().read()
    connection.close()


@pytest.mark.parametrize("fetch", [by_urllib, by_requests, by_http_client])
def test_round_trip_leaves_one_breadcrumb(start: Start, fetch: Callable[[str], None]) -> None:
    start(capture={"network": True})
    with ingest_server() as other:
        fetch(other.url + "/items?api_key=hidden&page=2")
        (data,) = net()
    assert data["method"] == "GET"
    assert data["url"] == other.url + "/items?api_key=***&page=2"
    assert data["status"] == 200
    assert isinstance(data["durationMs"], int)


@pytest.mark.parametrize("fetch", [by_urllib, by_requests, by_http_client])
def test_round_trip_without_an_answer_leaves_one_too(start: Start, fetch: Callable[[str], None]) -> None:
    start(capture={"network": True})
    with pytest.raises(OSError, match=r"."):
        fetch("http://127.0.0.1:1/items")
    (data,) = net()
    assert data["url"] == "http://127.0.0.1:1/items"
    assert "status" not in data


async def test_aiohttp_leaves_breadcrumbs_too(start: Start) -> None:
    start(capture={"network": True})
    with ingest_server() as other:
        async with aiohttp.ClientSession() as session:
            async with session.get(other.url + "/a?token=hidden") as response:
                assert response.status == 200
            with pytest.raises(aiohttp.ClientConnectionError):
                await session.get("http://127.0.0.1:1/b")
    first, second = net()
    assert (first["method"], first["url"], first["status"]) == ("GET", other.url + "/a?token=***", 200)
    assert second["url"] == "http://127.0.0.1:1/b"
    assert "status" not in second


def test_network_hook_is_off_by_default(start: Start) -> None:
    before = (http.client.HTTPConnection.putrequest, aiohttp.ClientSession.__init__)
    start()
    assert (http.client.HTTPConnection.putrequest, aiohttp.ClientSession.__init__) == before
    with ingest_server() as other:
        by_urllib(other.url)
    assert net() == []


def test_own_uploads_leave_no_breadcrumb(start: Start, sent: Callable[[], dict[str, Any]]) -> None:
    start(capture={"network": True})
    sent()
    sent()
    assert net() == []


def test_close_restores_everything(start: Start) -> None:
    before = [
        http.client.HTTPConnection.__dict__[name] for name in ("putrequest", "endheaders", "getresponse")
    ]
    made = aiohttp.ClientSession.__init__
    start(capture={"network": True})
    svc.close()
    assert [
        http.client.HTTPConnection.__dict__[name] for name in ("putrequest", "endheaders", "getresponse")
    ] == before
    assert aiohttp.ClientSession.__init__ is made


def test_https_and_tunnels_are_named_by_their_far_end(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    from svc.network import whole_url

    def connection(**fields: Any) -> SimpleNamespace:
        return SimpleNamespace(
            **{"host": "h", "port": 443, "default_port": 443, "_tunnel_host": None, **fields}
        )

    assert whole_url(connection(), "/p") == "https://h/p"
    assert whole_url(connection(port=8443), "/p") == "https://h:8443/p"
    assert whole_url(connection(default_port=80, port=80), "/p?u=http://x") == "http://h/p?u=http://x"
    assert whole_url(connection(host="::1", port=8443), "/p") == "https://[::1]:8443/p"
    assert whole_url(connection(_tunnel_host="far", _tunnel_port=443), "/p") == "https://far/p"
    assert whole_url(connection(), "http://proxied/p") == "http://proxied/p"


def test_aiohttp_is_never_imported(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "aiohttp")
    start(capture={"network": True})
    assert "aiohttp" not in sys.modules


@pytest.mark.parametrize(
    ("host", "url_host"),
    [
        ("jo:secret@shop.example", "shop.example"),
        ("::1", "[::1]"),
        (IPv4Address("127.0.0.1"), "127.0.0.1"),
    ],
)
def test_url_never_has_user_and_password(start: Start, host: Any, url_host: str) -> None:
    start(capture={"network": True})
    connection = http.client.HTTPConnection("localhost", 1)
    connection.host = host
    connection.putrequest("GET", "/items", skip_host=True)
    connection._create_connection = refuse  # type: ignore[attr-defined]
    with pytest.raises(ConnectionRefusedError):
        connection.endheaders()
    assert [data["url"] for data in net()] == [f"http://{url_host}:1/items"]


def refuse(*_: object, **__: object) -> Any:
    raise ConnectionRefusedError


class Unreadable(http.client.HTTPConnection):
    """A connection whose attributes fail, as those of a library of tomorrow might."""

    @property
    def _tunnel_host(self) -> str | None:
        raise RuntimeError("not yet")

    @_tunnel_host.setter
    def _tunnel_host(self, value: str | None) -> None:
        pass


def test_a_connection_that_cannot_be_described_works_as_without_us(start: Start) -> None:
    start(capture={"network": True})
    connection = Unreadable("localhost", 1)
    connection.putrequest("GET", "/items", skip_host=True)
    assert net() == []
