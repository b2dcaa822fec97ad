"""The worker reads maps of any content within limits; whatever it dies of, the next question is answered."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from schemas.errors import ChangesUnavailable
from sourcemaps import worker_process
from sourcemaps.worker import SourceMapWorker, WorkerFailed
from sourcemaps.worker_messages import (
    Check,
    Checked,
    ContentMissing,
    NotUsable,
    Position,
    Resolve,
    Resolved,
    Upload,
)
from tests.builds import VITE

BUILD = VITE[0]
UPLOAD = Upload(BUILD.file, "", BUILD.map, BUILD.script)
SMALL = json.dumps({"version": 3, "sources": ["a"], "sourcesContent": ["x"], "mappings": "AAAA"}).encode()


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@pytest.fixture
async def worker() -> AsyncIterator[SourceMapWorker]:
    running = SourceMapWorker()
    yield running
    await running.close()


async def test_a_map_is_opened_once_and_asked_again(worker: SourceMapWorker) -> None:
    checked = await worker.ask(Check(UPLOAD))
    assert isinstance(checked, Checked)
    question = Resolve(checked.digest, "sourceMap", [Position("s", 1, 522), Position("x", 9, 1)], ["A"])
    assert await worker.ask(question) == ContentMissing()
    with_content = Resolve(checked.digest, "sourceMap", question.positions, ["A"], checked.content)
    resolved = await worker.ask(with_content)
    assert isinstance(resolved, Resolved)
    assert [[(one.function, one.file, one.line) for one in frames] for frames in resolved.frames] == [
        [("totalOf", "src/cart.ts", 9)],
        [],
    ]
    assert await worker.ask(question) == resolved


async def test_a_file_that_crashes_the_library_ends_one_question(worker: SourceMapWorker) -> None:
    with pytest.raises(WorkerFailed, match="too much time or memory"):
        await worker.ask(Check(Upload("a.js", "", SMALL, b"(" * 100_000)))
    assert isinstance(await worker.ask(Check(UPLOAD)), Checked)


async def test_a_process_that_was_killed_between_two_questions_is_replaced(worker: SourceMapWorker) -> None:
    others = children()
    await worker.ask(Check(UPLOAD))
    (child,) = children() - others
    os.kill(int(child), signal.SIGKILL)
    assert isinstance(await worker.ask(Check(UPLOAD)), Checked)


async def test_a_process_that_cannot_start_is_no_fault_of_the_map(
    worker: SourceMapWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/none")
    with pytest.raises(ChangesUnavailable, match="can't be read now"):
        await worker.ask(Check(UPLOAD))


def test_a_refusal_is_short_and_names_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = worker_process.Worker()
    named = json.dumps({"version": 3, "file": "f" * 1_000}).encode()
    answer = worker.answer(Check(Upload("a.js", "", named)))
    assert isinstance(answer, NotUsable)
    assert len(answer.reason) == 500

    def fail(_upload: Upload) -> None:
        raise MemoryError("Unable to allocate an array")

    monkeypatch.setattr(worker_process, "check", fail)
    assert worker.answer(Check(UPLOAD)) == NotUsable("reading it takes too much memory")


async def test_damaged_content_is_no_end_of_the_worker(worker: SourceMapWorker) -> None:
    answer = await worker.ask(Resolve("d", "r8", [], [], b"no zstd"))
    assert isinstance(answer, NotUsable)
    assert isinstance(await worker.ask(Check(UPLOAD)), Checked)


async def test_a_question_that_takes_too_long_is_given_up() -> None:
    hasty = SourceMapWorker(seconds=0.0)
    with pytest.raises(WorkerFailed):
        await hasty.ask(Check(UPLOAD))
    await hasty.close()


async def test_who_no_longer_waits_leaves_no_answer_behind(worker: SourceMapWorker) -> None:
    asking = asyncio.create_task(worker.ask(Check(UPLOAD)))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await worker.ask(Resolve("d", "r8", [], [])) == ContentMissing()


def test_maps_that_are_used_no_more_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "CACHE_BYTES", 3 * len(SMALL))
    worker = worker_process.Worker()
    checked = worker.answer(Check(Upload("a.js", "", SMALL)))
    assert isinstance(checked, Checked)
    for digest in "abcd":
        worker.answer(Resolve(digest, "sourceMap", [], [], checked.content))
    kept = [isinstance(worker.answer(Resolve(digest, "sourceMap", [], [])), Resolved) for digest in "abcd"]
    assert kept == [False, True, True, True]
