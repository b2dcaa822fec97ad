"""The 1 MB limits, read and inflated (protocol, section 8; contract, section 2, point 5), and valid forms of gzip."""

import gzip
import json
import os
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from edge.http.inflate import inflate
from edge.request_errors import RequestError
from tests.contract.edge.live_edge import LiveEdge
from tests.edge_events import encoded, event

LIMIT = 1_048_576
TOO_LARGE = b'{"error":"payloadTooLarge"}'


def padded(size: int) -> bytes:
    body = encoded(pad="")
    return body.replace(b'"pad": ""', b'"pad": "' + b"x" * (size - len(body)) + b'"')


def padded_batch(size: int) -> bytes:
    body = json.dumps({"events": [event()], "pad": ""}).encode()
    return body.replace(b'"pad": ""', b'"pad": "' + b"x" * (size - len(body)) + b'"')


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(("extra", "status"), [(0, 202), (1, 413)])
@pytest.mark.parametrize(("path", "made"), [("/v1/events", padded), ("/v1/events:batch", padded_batch)])
@pytest.mark.holds("protocol 7", "protocol 8")
async def test_body_may_have_1048576_bytes_and_not_one_more(
    edge: LiveEdge, compressed: bool, extra: int, status: int, path: str, made: Callable[[int], bytes]
) -> None:
    body = made(LIMIT + extra)
    assert len(body) == LIMIT + extra
    headers = edge.headers(Content_Encoding="gzip" if compressed else "")
    answer = await edge.post(gzip.compress(body) if compressed else body, path, headers)
    assert answer.status == status
    assert status == 202 or answer.body == TOO_LARGE


async def test_body_without_a_length_is_counted_while_it_is_read(edge: LiveEdge) -> None:
    for size, status in ((LIMIT, 202), (LIMIT + 1, 413), (3 * LIMIT, 413)):
        body = padded(size)

        async def pieces(body: bytes = body) -> object:
            for offset in range(0, len(body), 50_000):
                yield body[offset : offset + 50_000]

        async with edge.session.post(
            edge.url + "/v1/events", data=pieces(), headers=edge.headers()
        ) as response:
            assert response.status == status


@pytest.mark.holds("contract 2.5")
async def test_incompressible_body_of_the_limit_s_size_is_accepted(edge: LiveEdge) -> None:
    import random

    letters = random.Random(1).choices(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", k=LIMIT
    )
    body = padded(LIMIT).replace(b"x" * 100_000, "".join(letters[:100_000]).encode(), 1)
    stored = gzip.compress(body, 0)
    assert len(stored) > LIMIT
    assert (await edge.post(stored, headers=edge.headers(Content_Encoding="gzip"))).status == 202


async def test_gzip_of_several_members_is_one_body(edge: LiveEdge) -> None:
    body = encoded()
    members = gzip.compress(body[:100]) + gzip.compress(b"") + gzip.compress(body[100:])
    assert (await edge.post(members, headers=edge.headers(Content_Encoding="gzip"))).status == 202
    assert edge.stored_bytes() == [body]


GOOD = gzip.compress(encoded())
NOT_GZIP = {
    "empty": b"",
    "plain": b"plain",
    "json": encoded(),
    "a byte short": GOOD[:-1],
    "no trailer": GOOD[:-8],
    "head": GOOD[:20],
    "zero after": GOOD + b"\x00",
    "garbage after": GOOD + b"garbage",
    "checksum": GOOD[:-5] + bytes([GOOD[-5] ^ 1]) + GOOD[-4:],
    "zlib": zlib.compress(encoded()),
    "damaged": GOOD[:30] + b"\xff" * 20 + GOOD[50:],
    "many members": gzip.compress(b"") * 65,
}


@pytest.mark.parametrize("body", NOT_GZIP.values(), ids=NOT_GZIP)
@pytest.mark.holds("contract 2.4")
async def test_body_that_is_not_valid_gzip_is_400(edge: LiveEdge, body: bytes) -> None:
    answer = await edge.post(body, headers=edge.headers(Content_Encoding="gzip"))
    assert (answer.status, answer.fields) == (400, ["body"])
    assert ("not another" in str(answer.json)) == (body.startswith(GOOD) and body != GOOD)
    assert edge.stored() == []


def bomb(size: int) -> bytes:
    """Zeros: one flushed block of a megabyte, again and again; its checksum is never reached."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = squeeze.compress(bytes(1 << 20)) + squeeze.flush(zlib.Z_FULL_FLUSH)
    return gzip.compress(b"")[:10] + block * (size >> 20) + squeeze.flush()


@pytest.mark.holds("contract 2.5")
def test_bomb_of_a_gigabyte_adds_less_than_8_mb_of_memory() -> None:
    """In a separate process: the peak of resident memory before and after."""
    program = (
        "import resource, sys; from edge.http.inflate import inflate; from edge.request_errors import RequestError\n"
        "data = sys.stdin.buffer.read(); peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak()\n"
        "try: inflate(data)\n"
        "except RequestError as error: print(error.error.status, peak() - before)\n"
    )
    body = bomb(1 << 30)
    assert 900_000 < len(body) < LIMIT + 65_536
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        input=body,
        capture_output=True,
        check=True,
        cwd=Path(__file__).parents[3],
        env={**os.environ},
    )
    status, added_kilobytes = map(int, done.stdout.split())
    assert status == 413
    assert added_kilobytes < 8 * 1024


def test_members_that_add_up_to_a_bomb_stop_one_byte_past_the_limit() -> None:
    member = gzip.compress(bytes(600_000))
    tracemalloc.start()
    with pytest.raises(RequestError) as caught:
        inflate(member * 60)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert caught.value.error.status == 413
    assert peak < 4 << 20
