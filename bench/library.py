"""The cost of the reporting library for the calling thread: `python -m bench.library [--seconds N]`.

Measures a capture (20 frames, a cause, 100 breadcrumbs, tags and a user in scope) and a breadcrumb, while the background
thread sends to a server in another process. Floors of the same run: `traceback.extract_tb` of the same error, and building
and appending a breadcrumb's dictionary. "CPU of all threads" includes building and sending events in the background.
"""

import argparse
import statistics
import subprocess
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable

import svc

SERVER = """
import sys
from tests.unit.svc.ingest import ingest_server
with ingest_server() as ingest:
    print(ingest.url, flush=True)
    sys.stdin.read()
"""
CAPTURE_TARGET_US = 300.0
BREADCRUMB_TARGET_US = 3.0


def deep(levels: int) -> None:
    """Fail `levels` frames below."""
    if levels:
        deep(levels - 1)
    else:
        try:
            int("missing")
        except ValueError as error:
            raise ValueError("a message of a usual length, with an id 4711 in it") from error


def example() -> ValueError:
    """An error of 20 frames with a cause."""
    try:
        deep(18)
    except ValueError as error:
        return error
    raise AssertionError


def each(call: Callable[[], object], seconds: float, pause: float = 0.0) -> list[float]:
    """Microseconds of each call, waiting included, for about `seconds`."""
    took = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter_ns()
        call()
        took.append((time.perf_counter_ns() - began) / 1_000)
        if pause:
            time.sleep(pause)
    return took


def per_call(call: Callable[[], object], seconds: float) -> list[float]:
    """CPU microseconds of the thread per call, in rounds of a thousand: single calls are too short to time.

    Nothing here waits, and CPU time says the same on a machine that does other things meanwhile.
    """
    took = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.thread_time_ns()
        for _ in range(1_000):
            call()
        took.append((time.thread_time_ns() - began) / 1_000_000)
    return took


def line(name: str, took: list[float], target: float | None = None) -> None:
    """Print the median and the 99th percentile."""
    median = statistics.median(took)
    p99 = statistics.quantiles(took, n=100)[98] if len(took) > 1 else median
    verdict = "" if target is None else f"   target {target:g}: {'met' if median < target else 'MISSED'}"
    print(f"{name:<44} median {median:8.2f} us   p99 {p99:8.2f} us{verdict}")


def fill_scope() -> None:
    """Fill the scope like a busy program's."""
    svc.set_user({"id": "42", "name": "Jo"})
    svc.set_tags({f"tag{n}": f"value {n}" for n in range(10)})
    for n in range(100):
        svc.add_breadcrumb({"type": "log", "level": "info", "message": f"line {n}", "data": {"n": n}})


def measure(seconds: float) -> None:
    """All figures of one run."""
    error = example()

    def breadcrumb_floor() -> None:
        ring.append(
            {"timestamp": time.time_ns(), "type": "log", "message": "m", "data": {"user": "42", "n": 1}}
        )

    ring: deque[object] = deque(maxlen=100)
    line("floor: traceback.extract_tb", each(lambda: traceback.extract_tb(error.__traceback__), seconds))
    svc.capture_exception(example())
    svc.flush(10)
    cpu, before = time.process_time(), svc.stats().get("sent", 0)
    took = each(lambda: svc.capture_exception(error), seconds, 0.005)
    svc.flush(10)
    spent = (time.process_time() - cpu) * 1e6 / len(took)
    line("capture, now and then", took, CAPTURE_TARGET_US)
    sent = svc.stats().get("sent", 0) - before
    print(f"{'':<44} CPU of all threads {spent:.0f} us a capture; {sent} of {len(took)} sent")
    line(
        "capture, faster than the queue empties",
        each(lambda: svc.capture_exception(error), seconds),
        CAPTURE_TARGET_US,
    )
    svc.flush(30)
    line("floor: a dictionary into a deque", per_call(breadcrumb_floor, seconds))
    crumb = {"type": "log", "level": "info", "message": "m", "data": {"user": "42", "n": 1}}
    line("breadcrumb", per_call(lambda: svc.add_breadcrumb(crumb), seconds), BREADCRUMB_TARGET_US)
    line("set_tag", per_call(lambda: svc.set_tag("tag5", "value"), seconds))


def main() -> None:
    """Start the server, measure, stop it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    arguments = parser.parse_args()
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        svc.init(token="svc_pk_bench", release="bench@1+1", ingest_url=url)  # noqa: S106  # nobody checks it
        fill_scope()
        measure(arguments.seconds)
        svc.close()
    finally:
        server.communicate()


if __name__ == "__main__":
    main()
