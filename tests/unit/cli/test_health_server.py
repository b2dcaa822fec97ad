import socket

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter

from cli.health_server import serving_health
from schemas.errors import CannotRun
from schemas.health import Health


async def test_readyz_is_503_until_every_part_works_and_names_the_parts() -> None:
    health = Health()
    async with (
        serving_health("127.0.0.1", 0, "SVC_PORT", health, CollectorRegistry()) as port,
        aiohttp.ClientSession() as session,
    ):
        async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
            assert (answer.status, await answer.json()) == (503, {"ready": False, "parts": {}})
        health.set("kafka", ok=False, detail="no broker answers")
        async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
            assert answer.status == 503
            assert await answer.json() == {
                "ready": False,
                "parts": {"kafka": {"ok": False, "detail": "no broker answers"}},
            }
        health.set("kafka", ok=True)
        async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
            assert answer.status == 200


async def test_healthz_and_metrics_answer_for_any_state_of_the_parts() -> None:
    registry = CollectorRegistry()
    Counter("svc_things", "Things.", registry=registry).inc()
    async with (
        serving_health("127.0.0.1", 0, "SVC_PORT", Health(), registry) as port,
        aiohttp.ClientSession() as session,
    ):
        async with session.get(f"http://127.0.0.1:{port}/healthz") as answer:
            assert answer.status == 200
            assert answer.headers["Server"] == "svc"
        async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
            assert "svc_things_total 1.0" in await answer.text()


async def test_an_address_that_another_has_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(CannotRun, match=rf"127\.0\.0\.1:{port} \(SVC_PORT\): "):
            async with serving_health("127.0.0.1", port, "SVC_PORT", Health(), CollectorRegistry()):
                pass
