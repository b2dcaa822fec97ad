"""The scope beyond the cases of all libraries (`tests/unit/libraries`)."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

import svc
from tests.unit.svc.conftest import given_tags
from tests.unit.svc.ingest import Ingest

Sent = Callable[[], dict[str, Any]]
Start = Callable[..., Ingest]

PUBLIC = {
    "setUser": svc.set_user,
    "setTag": svc.set_tag,
    "setTags": svc.set_tags,
    "clearTags": svc.clear_tags,
    "addBreadcrumb": svc.add_breadcrumb,
    "getBreadcrumbs": svc.get_breadcrumbs,
    "clearBreadcrumbs": svc.clear_breadcrumbs,
    "captureException": svc.capture_exception,
}


@pytest.mark.parametrize("spelling", PUBLIC)
def test_protocols_spelling_is_the_same_function(spelling: str) -> None:
    assert getattr(svc, spelling) is PUBLIC[spelling]


def test_before_init_everything_does_nothing() -> None:
    svc.set_user({"id": "7"})
    svc.set_tag("a", "b")
    svc.set_tags({"a": "b"})
    svc.clear_tags()
    svc.add_breadcrumb({"message": "m"})
    svc.track("bought")
    svc.session_active()
    svc.session_background()
    svc.watch_loop()
    assert svc.get_breadcrumbs() == []
    svc.clear_breadcrumbs()
    assert svc.capture_exception(ValueError()) is None
    assert svc.flush() is True
    assert svc.close() is True
    assert svc.stats() == {}


def test_tags_are_cut_to_the_limits_and_the_cuts_are_counted(
    start: Start, sent: Sent, caplog: pytest.LogCaptureFixture
) -> None:
    start()
    svc.set_tags({f"key{n}": "v" for n in range(60)})
    svc.set_tags({"key0": "x" * 300, "key1": 5})  # type: ignore[dict-item]
    tags = given_tags(sent())
    assert len(tags) == 50
    assert len(tags["key0"]) == 200
    assert tags["key1"] == "5"
    assert svc.stats()["droppedTags"] == 10
    assert svc.stats()["clippedTags"] == 1
    assert len([r for r in caplog.records if "tags are cut" in r.getMessage()]) == 2
    svc.clear_tags()
    svc.set_tag("k" * 100, "v")
    assert list(given_tags(sent())) == ["k" * 63 + "…"]


def test_breadcrumb_input_is_message_type_level_and_data_all_optional(start: Start) -> None:
    start()
    svc.add_breadcrumb({"message": "m", "type": "log", "level": "warning", "data": {"n": 1}})
    svc.add_breadcrumb({})
    svc.add_breadcrumb(message="by keyword", data={"k": [1, 2]})
    svc.add_breadcrumb("a text")
    full, empty, keyword, text = svc.get_breadcrumbs()
    assert full.pop("timestamp").endswith("Z")
    assert full == {
        "type": "log",
        "message": "m",
        "level": "warning",
        "data": {"level": "warning", "message": "m", "n": 1},
    }
    assert (empty["type"], empty["data"]) == ("custom", {})
    assert (keyword["message"], keyword["data"]) == ("by keyword", {"k": [1, 2], "message": "by keyword"})
    assert text["message"] == "a text"


def test_get_breadcrumbs_returns_a_copy(start: Start) -> None:
    start()
    svc.add_breadcrumb({"data": {"a": 1}})
    svc.get_breadcrumbs()[0]["data"]["a"] = 2
    svc.get_breadcrumbs().clear()
    assert svc.get_breadcrumbs()[0]["data"] == {"a": 1}


def test_capture_takes_a_snapshot_that_later_changes_do_not_touch(start: Start) -> None:
    ingest = start(flush_interval=60)
    data = {"deep": {"n": 1}}
    svc.set_tag("when", "before")
    svc.set_user({"id": "before"})
    svc.add_breadcrumb({"message": "before", "data": data})
    svc.capture_exception(ValueError())
    data["deep"]["n"] = 2
    svc.set_tag("when", "after")
    svc.set_user({"id": "after"})
    svc.add_breadcrumb({"message": "after"})
    assert svc.flush(10)
    (event,) = ingest.events
    assert (given_tags(event), event["user"]) == ({"when": "before"}, {"id": "before"})
    assert [crumb["data"] for crumb in event["breadcrumbs"]] == [{"message": "before", "deep": {"n": 1}}]


def test_misuse_raises_nothing(start: Start) -> None:
    start()
    misuses: list[Callable[[], object]] = [
        lambda: svc.set_user("jo"),  # type: ignore[arg-type]
        lambda: svc.set_tags(None),  # type: ignore[arg-type]
        svc.set_tag,  # type: ignore[list-item]
        lambda: svc.add_breadcrumb(42),  # type: ignore[arg-type]
        lambda: svc.add_breadcrumb({"type": ["x"], "data": object()}),
        lambda: svc.capture_exception("not an exception"),  # type: ignore[arg-type]
        lambda: svc.capture_exception(ValueError(), tags=7, fingerprint=3),  # type: ignore[arg-type]
        lambda: svc.flush("soon"),  # type: ignore[arg-type]
        svc.capture_exception,
    ]
    for misuse in misuses:
        misuse()


def test_many_threads_may_use_the_scope_concurrently(start: Start) -> None:
    ingest = start(queue_size=10_000)
    begin = threading.Barrier(8)

    def work(number: int) -> None:
        begin.wait()
        for n in range(50):
            svc.set_tag(f"t{number}", str(n))
            svc.add_breadcrumb({"message": f"{number}-{n}"})
            svc.get_breadcrumbs()
            svc.set_user({"id": str(number)})
            svc.capture_exception(ValueError(f"{number}-{n}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert svc.flush(20)
    assert len({event["id"] for event in ingest.events}) == 400
    assert {event["error"]["message"] for event in ingest.events} == {
        f"{a}-{b}" for a in range(8) for b in range(50)
    }


class Unreadable(dict[str, str]):
    """A mapping that fails when it is read."""

    def items(self) -> Any:
        raise RuntimeError("closed")

    def get(self, *_: Any) -> Any:
        raise RuntimeError("closed")


@pytest.mark.parametrize(
    "bad", ["text", 7, [("a", "b")], Unreadable(a="b")], ids=lambda bad: type(bad).__name__
)
@pytest.mark.parametrize("field", ["tags", "user"])
def test_a_bad_argument_of_a_capture_loses_itself_and_not_the_event(
    start: Start, field: str, bad: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ingest = start()
    svc.set_tag("feature", "pay")
    svc.set_user({"id": "7"})
    event_id = svc.capture_exception(ValueError("kept"), **{field: bad})
    assert svc.flush(10)
    (event,) = ingest.events
    assert (event["id"], given_tags(event), event["user"]) == (event_id, {"feature": "pay"}, {"id": "7"})
    assert f"capture_exception: {field} left out" in caplog.text


def test_invalid_users_and_tags_are_named_in_the_log(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    start()
    svc.set_user("jo")  # type: ignore[arg-type]
    svc.set_tags(["a"])  # type: ignore[arg-type]
    assert "a user is a mapping such as {'id': '42'}, not str" in caplog.text
    assert "tags are a mapping such as {'plan': 'pro'}, not list" in caplog.text
