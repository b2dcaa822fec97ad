import aiohttp
from prometheus_client import CollectorRegistry, Counter

from cli.health_server import serve_health
from schemas.health import Health


async def test_readyz_is_503_until_every_part_works_and_names_the_parts() -> None:
    health = Health()
    health.set("kafka", ok=False, detail="no broker answers")
    server = await serve_health("127.0.0.1", 0, health, CollectorRegistry())
    try:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{server.port}/readyz") as answer:
                assert answer.status == 503
                assert await answer.json() == {
                    "ready": False,
                    "parts": {"kafka": {"ok": False, "detail": "no broker answers"}},
                }
            health.set("kafka", ok=True)
            async with session.get(f"http://127.0.0.1:{server.port}/readyz") as answer:
                assert answer.status == 200
    finally:
        await server.close()


async def test_healthz_and_metrics_answer_whatever_the_parts_say() -> None:
    registry = CollectorRegistry()
    Counter("svc_things", "Things.", registry=registry).inc()
    server = await serve_health("127.0.0.1", 0, Health(), registry)
    try:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{server.port}/healthz") as answer:
                assert answer.status == 200
            async with session.get(f"http://127.0.0.1:{server.port}/metrics") as answer:
                assert "svc_things_total 1.0" in await answer.text()
    finally:
        await server.close()
