"""Hooks within a process: they capture, call the previous hook, and are removed."""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

import svc
from svc.client import current
from svc.hooks import Hooks
from svc.notices import Notices
from tests.eventually import eventually
from tests.unit.svc.ingest import Ingest

Start = Callable[..., Ingest]


def messages(ingest: Ingest) -> list[str]:
    assert svc.flush(10)
    return [event["error"]["message"] for event in ingest.events]


def hooks() -> tuple[object, ...]:
    return (
        sys.excepthook,
        threading.excepthook,
        sys.unraisablehook,
        asyncio.BaseEventLoop.call_exception_handler,
    )


def test_close_restores_the_hooks(start: Start) -> None:
    before = hooks()
    start()
    assert all(ours is not theirs for ours, theirs in zip(hooks(), before, strict=True))
    svc.close()
    assert hooks() == before


def test_later_hook_of_other_code_is_left_in_place(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # so that it comes back once both are gone
    start()
    ours = sys.excepthook
    seen: list[BaseException] = []

    def theirs(kind: Any, error: BaseException, traceback: Any) -> None:
        seen.append(error)
        ours(kind, error, traceback)

    monkeypatch.setattr(sys, "excepthook", theirs)
    svc.close()
    assert sys.excepthook is theirs
    sys.excepthook(ValueError, ValueError("after close"), None)
    assert len(seen) == 1


def test_hooks_can_be_disabled(start: Start) -> None:
    before = hooks()
    start(capture={"errors": False})
    assert hooks() == before


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_end_of_a_program_is_no_error(
    start: Start, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)
    ingest = start()
    sys.excepthook(type(error), error, None)
    assert messages(ingest) == []


async def test_previous_handler_of_a_third_party_loop_is_called(start: Start) -> None:
    ingest = start()
    calls: list[dict[str, Any]] = []

    class Foreign:
        handler: Any = None

        def get_exception_handler(self) -> Any:
            return lambda _loop, context: calls.append(context)

        def set_exception_handler(self, handler: Any) -> None:
            self.handler = handler

    loop = Foreign()
    svc.watch_loop(loop)
    loop.handler(loop, {"exception": ValueError("in a callback"), "message": "m"})
    loop.handler(loop, {"message": "without an exception"})
    assert len(calls) == 2
    assert messages(ingest) == ["in a callback"]


def test_sessions_are_breadcrumbs_if_enabled(start: Start) -> None:
    start(capture={"sessions": True})
    svc.session_background()
    svc.session_active()
    assert [(crumb["type"], crumb["data"]) for crumb in svc.get_breadcrumbs()] == [
        ("user", {"action": "active", "target": "app"}),
        ("user", {"action": "background", "target": "app"}),
        ("user", {"action": "active", "target": "app"}),
    ]


def test_sessions_are_no_breadcrumbs_otherwise(start: Start) -> None:
    start()
    svc.session_active()
    assert svc.get_breadcrumbs() == []


async def test_process_that_goes_on_after_a_stop_is_active_again(start: Start) -> None:
    start(capture={"sessions": True})
    svc.clear_breadcrumbs()
    os.kill(os.getpid(), signal.SIGCONT)
    (crumb,) = await eventually(svc.get_breadcrumbs)
    assert crumb["data"] == {"action": "active", "target": "app"}
    svc.close()
    assert signal.getsignal(signal.SIGCONT) is signal.SIG_DFL


def test_log_records_become_breadcrumbs_and_their_errors_events(start: Start) -> None:
    ingest = start(capture={"logs": True})
    logger = logging.getLogger("shop")
    logger.setLevel(logging.DEBUG)
    logger.debug("too little")
    logger.warning("low on %s", "paper")
    logger.error("an error without an exception")
    try:
        int("no number")
    except ValueError:
        logger.exception("failed")
        logger.warning("seen", exc_info=True)
    crumbs = [(c["type"], c["data"]["level"], c["data"]["message"]) for c in svc.get_breadcrumbs()]
    assert crumbs == [
        ("log", "warning", "low on paper"),
        ("log", "error", "an error without an exception"),
        ("log", "error", "failed"),
        ("log", "warning", "seen"),
    ]
    assert messages(ingest) == ["invalid literal for int() with base 10: 'no number'"]
    assert ingest.events[0]["breadcrumbs"][-1]["data"]["message"] == "failed"


def test_logged_errors_are_breadcrumbs_by_default_and_no_events(start: Start) -> None:
    ingest = start()
    logger = logging.getLogger("shop")
    logger.warning("low on paper")
    logger.error("out of %s", "paper")
    logger.error("failed", exc_info=ValueError("m"))
    assert [crumb["data"]["message"] for crumb in svc.get_breadcrumbs()] == ["out of paper", "failed"]
    assert messages(ingest) == []


def test_logged_errors_become_events_by_one_option(start: Start) -> None:
    ingest = start(capture={"logs": "events"})
    logger = logging.getLogger("shop.pay")
    handler = svc.LogHandler(messages=True)
    logger.addHandler(handler)
    try:
        logger.warning("low on paper")
        for order in (7, 8):
            logger.error("order %d failed", order)
            logger.error(f"order {order} is late")
        logger.error("failed", exc_info=ValueError("m"))
    finally:
        logger.removeHandler(handler)
    assert messages(ingest) == ["order 7 failed", "order 7 is late", "order 8 failed", "order 8 is late", "m"]
    *logged, raised = ingest.events
    assert {event["error"]["type"] for event in logged} == {"shop.pay"}
    assert [event["fingerprint"] for event in logged] == 2 * [
        ["shop.pay", "order %d failed"],
        ["shop.pay", "order <*> is late"],
    ]
    assert logged[0]["error"]["stack"][0]["function"] == "test_logged_errors_become_events_by_one_option"
    assert [crumb["data"]["message"] for crumb in raised["breadcrumbs"]] == ["low on paper", "failed"]
    assert "fingerprint" not in raised


def test_an_exception_is_captured_though_its_text_can_not_be_formatted(start: Start) -> None:
    ingest, error = start(), ValueError("m")
    record = logging.LogRecord(
        "shop", logging.ERROR, "shop.py", 1, "%d", ("no number",), (ValueError, error, None)
    )
    svc.LogHandler().emit(record)
    assert messages(ingest) == ["m"]
    assert svc.get_breadcrumbs() == []


def test_record_of_another_thread_has_no_stack(start: Start) -> None:
    ingest = start()
    record = logging.LogRecord("shop", logging.ERROR, "elsewhere.py", 1, "out of paper", (), None)
    svc.LogHandler(messages=True).emit(record)
    assert messages(ingest) == ["out of paper"]
    assert ingest.events[0]["error"]["stack"] == []


@pytest.mark.parametrize(
    "options", [{"capture": {"logs": False}}, {"token": ""}], ids=["off", "nothing is sent"]
)
def test_logs_are_not_captured_unless_enabled(start: Start, options: dict[str, Any]) -> None:
    call_handlers = logging.Logger.callHandlers
    start(**options)
    assert logging.Logger.callHandlers is call_handlers


@pytest.mark.parametrize("captured", [{}, {"logs": True}])
def test_record_that_a_handler_of_the_application_gives_too_is_one_breadcrumb(
    start: Start, captured: dict[str, bool]
) -> None:
    start(capture=captured)
    logger = logging.getLogger("shop.twice")
    handler = svc.LogHandler()
    logger.addHandler(handler)
    try:
        logger.error("once")
        logger.error("once")
    finally:
        logger.removeHandler(handler)
    assert [crumb["data"]["message"] for crumb in svc.get_breadcrumbs()] == ["once", "once"]


def test_record_is_one_breadcrumb_after_an_init_below_a_hook_of_other_code(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.Logger, "callHandlers", logging.Logger.callHandlers)
    start()
    ours = logging.Logger.callHandlers

    def theirs(logger: logging.Logger, record: logging.LogRecord) -> None:
        ours(logger, record)
        logging.makeLogRecord(record.__dict__)

    monkeypatch.setattr(logging.Logger, "callHandlers", theirs)
    start()
    logging.getLogger("shop").error("once")
    assert [crumb["data"]["message"] for crumb in svc.get_breadcrumbs()] == ["once"]


def test_log_handler_survives_a_record_that_cannot_be_formatted(start: Start) -> None:
    start()
    handler = svc.LogHandler()
    handler.emit(logging.LogRecord("shop", logging.INFO, "f", 1, "%d", ("not a number",), None))
    handler.emit(logging.LogRecord("svc", logging.WARNING, "f", 1, "our own", (), None))
    assert svc.get_breadcrumbs() == []


def test_listening_to_logs_ends_with_close(start: Start) -> None:
    handlers, call_handlers = list(logging.getLogger().handlers), logging.Logger.callHandlers
    start(capture={"logs": True})
    assert logging.getLogger().handlers == handlers
    assert logging.Logger.callHandlers is not call_handlers
    svc.close()
    assert logging.Logger.callHandlers is call_handlers
    svc.LogHandler().emit(logging.LogRecord("shop", logging.INFO, "f", 1, "m", (), None))


def test_hook_never_raises_even_if_the_client_does(start: Start) -> None:
    start()
    client = current()
    assert client is not None

    def broken(*_args: Any, **_kwargs: Any) -> None:
        raise RuntimeError("our fault")

    client.capture = broken  # type: ignore[method-assign]
    Hooks(current)._capture(ValueError())
    assert client.counts["dropped.fault"] == 1


def test_log_handler_and_full_queue_do_not_wait_for_each_other(start: Start) -> None:
    """One thread logs errors through our handler, others fill the queue until it warns, through the same logging."""
    start(capture={"logs": True}, queue_size=2, flush_interval=60)
    logger = logging.getLogger("shop")

    def log() -> None:
        for n in range(300):
            logger.error("failed", exc_info=ValueError(str(n)))

    def capture() -> None:
        for n in range(300):
            client.transport._outcomes._notices = Notices()  # type: ignore[union-attr]
            svc.capture_exception(ValueError(str(n)))

    client = current()
    assert client is not None
    threads = [threading.Thread(target=work, daemon=True) for work in (log, capture, log, capture)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
