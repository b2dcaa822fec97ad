"""Misbehaving objects of the program lose only their own value, never the event or the program."""

import itertools
import linecache
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import CodeType
from typing import Any, Never

import pytest

import svc
from svc.client import current
from svc.exception_chain import CallSite, chain
from svc.frames import Framer
from svc.source_files import MAX_SOURCE_BYTES, source_lines
from tests.unit.svc.ingest import Ingest

Start = Callable[..., Ingest]


def raising(*_: object) -> Never:
    raise RuntimeError("no")


class FrozenError(Exception):
    __setattr__ = raising


class NamelessMeta(type):
    __name__ = property(raising)


class LongText(str):
    """A text that reports a wrong length and has no end."""

    __slots__ = ()
    __len__ = raising
    __getitem__ = raising
    __iter__ = raising


class Liar(Exception):
    def __str__(self) -> str:
        return LongText("said")


class ManyNotes(list[str]):
    def __iter__(self) -> Iterator[str]:
        return itertools.repeat("again")

    def __getitem__(self, key: object) -> Any:
        raise RuntimeError


def with_notes(notes: object) -> Exception:
    error = ValueError("said")
    error.__notes__ = notes  # type: ignore[assignment]
    return error


def spoiled(name: str, spoil: object) -> Exception:
    kind = type("Spoiled", (Exception,), {name: spoil})
    error: Exception = kind("said")
    return error


def caught(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause  # noqa: TRY301  # raised only to be caught
    except BaseException:  # noqa: BLE001  # groups too; `error` itself was caught
        return error


AWKWARD: dict[str, Callable[[], BaseException]] = {
    **{
        f"{name} {how}": lambda name=name, spoil=spoil: spoiled(name, spoil)  # type: ignore[misc]
        for name in (
            *("__notes__", "__cause__", "__context__", "__traceback__", "__suppress_context__"),
            *("__class__", "__dict__", "args", "exceptions", "__svc_event_id__"),
        )
        for how, spoil in {
            "raises": property(raising),
            "is something else": 7,
            "is long": LongText("x"),
        }.items()
        if (name, how) not in {("__class__", "is something else"), ("__class__", "is long")}
    },
    "every attribute raises": lambda: spoiled("__getattribute__", raising),
    "no attribute can be set": lambda: FrozenError("said"),
    "text of a subclass": Liar,
    "class without a name": lambda: NamelessMeta("Nameless", (Exception,), {})("said"),
    "notes without an end": lambda: with_notes(ManyNotes(["one"])),
    "notes that cannot be printed": lambda: with_notes([spoiled("__str__", raising), "two"]),
    "group": lambda: BaseExceptionGroup("said", [KeyboardInterrupt(), spoiled("__str__", raising)]),
    "group that hides its members": lambda: type(
        "Hiding", (ExceptionGroup,), {"exceptions": property(raising)}
    )("said", [ValueError("member")]),
    "text that is large": lambda: ValueError("said" + "x" * 5_000_000),
}


@pytest.mark.parametrize("what", AWKWARD)
def test_exception_of_any_kind_is_an_event(start: Start, what: str) -> None:
    ingest = start()
    error = caught(AWKWARD[what]())
    assert svc.capture_exception(error) is not None
    client = current()
    assert client is not None
    client.capture_uncaught(error)
    assert svc.flush(10)
    (event,) = ingest.events
    assert event["error"]["message"].startswith("said")
    assert event["error"]["stack"][0]["function"] == "caught"


def test_unreadable_cause_falls_back_to_the_interpreters(start: Start) -> None:
    ingest = start()
    svc.capture_exception(caught(spoiled("__cause__", property(raising)), KeyError("root")))
    assert svc.flush(10)
    assert ingest.events[0]["error"]["cause"]["type"] == "KeyError"


class Endless(Mapping[str, str]):
    """A mapping without an end."""

    def __getitem__(self, key: str) -> str:
        return "value"

    def get(self, _key: str, default: object = None) -> Any:
        return default

    def __iter__(self) -> Iterator[str]:
        return (str(number) for number in itertools.count())

    def __len__(self) -> int:
        return 1


def test_endless_values_are_cut(start: Start) -> None:
    ingest = start(identity=True)
    svc.set_tags(Endless())
    svc.set_user({"id": "7", "linkBy": Endless()})
    svc.add_breadcrumb(Endless())
    svc.add_breadcrumb(
        "large", data={"list": list(range(10_000)), "bytes": b"x" * 10_000_000, "endless": Endless()}
    )
    svc.capture_exception(ValueError("m"), user=Endless(), fingerprint=map(str, itertools.count()))
    svc.capture_exception(ValueError("m"), tags=Endless())
    assert svc.flush(10)
    one, two = ingest.events
    assert len(one["tags"]) == len(two["tags"]) == 50
    assert len(one["fingerprint"]) == 20
    assert len(two["user"]["linkHashes"]) == 20
    assert len(str(one["breadcrumbs"])) < 20_000


def test_text_of_a_large_value_is_not_built(start: Start) -> None:
    class Counting:
        calls = 0

        def __repr__(self) -> str:
            Counting.calls += 1
            return "x"

    start()
    svc.set_tag("large", [Counting()] * 100_000)  # type: ignore[arg-type]
    svc.add_breadcrumb("m", data={"deep": [[[[[[[Counting()] * 100_000]]]]]]})
    assert Counting.calls < 1_000


def test_only_a_regular_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fifo = tmp_path / "fifo.py"
    os.mkfifo(fifo)
    large = tmp_path / "large.py"
    with large.open("wb") as file:
        file.truncate(MAX_SOURCE_BYTES + 1)
    (tmp_path / "link.py").symlink_to(fifo)
    monkeypatch.syspath_prepend(str(tmp_path))
    opened: list[str] = []
    real_open = os.open

    def noting_open(path: str, flags: int) -> int:
        opened.append(path)
        return real_open(path, flags)

    monkeypatch.setattr(os, "open", noting_open)
    names = [
        "/dev/zero",
        "/dev/tty",
        "/proc/kmsg",
        str(fifo),
        "fifo.py",
        "link.py",
        str(large),
        str(tmp_path),
    ]
    names += ["//server/share/x.py", "\\\\server\\share\\x.py", "", "\0", "no such file.py", "x" * 5_000]
    assert [name for name in names if source_lines(name)] == []
    assert all(stat.S_ISREG(Path(path).stat().st_mode) for path in opened)


def test_source_is_read_in_its_own_encoding_and_from_the_modules_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "latin_source.py").write_bytes("# coding: latin-1\nname = 'größe'\n".encode("latin-1"))
    (tmp_path / "torn_source.py").write_bytes(b"# 1\n# 2\nname = '\xff'\n")
    (tmp_path / "odd_source.py").write_bytes(b"# coding: no-such-coding\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert source_lines("latin_source.py")[1] == "name = 'größe'\n"
    assert source_lines("torn_source.py")[2] == "name = '\ufffd'\n"
    assert source_lines("odd_source.py") == []


def test_failing_loader_loses_only_the_source() -> None:
    name = "/no/such/place/loaded.py"
    names = {"__name__": "loaded", "__loader__": spoiled("get_source", raising)}
    try:
        exec(compile("raise ValueError('m')", name, "exec"), names)
    except ValueError as error:
        (link,) = chain(error)
    frame = Framer().frames(link.sites)[0]
    linecache.cache.pop(name, None)
    assert (frame["absolutePath"], frame["line"], "preContext" in frame) == (name, 1, False)


def test_globals_of_a_dict_subclass_are_bypassed() -> None:
    class Names(dict[str, Any]):
        __contains__ = raising
        get = raising

    try:
        exec(compile("raise ValueError('m')", "/no/such/place/named.py", "exec"), Names(__name__="named"))
    except ValueError as error:
        (link,) = chain(error)
    assert link.sites[0].module == "named"


def test_hand_made_code_object_loses_only_its_frame() -> None:
    code: CodeType = compile("pass", "/no/such/place/made.py", "exec")
    unhashable = code.replace(co_consts=([],))
    made, plain = Framer().frames([CallSite(unhashable, 3, -1, None), CallSite(code, 1, -1, None)])
    assert (made["line"], made["inApp"]) == (3, False)
    assert plain["file"] == "made.py"


def test_event_is_sent_from_a_deleted_working_directory(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "gone"
    directory.mkdir()
    monkeypatch.chdir(directory)
    directory.rmdir()
    ingest = start()
    svc.capture_exception(ValueError("m"))
    assert svc.flush(10)
    assert len(ingest.events) == 1
    monkeypatch.chdir(tmp_path)
