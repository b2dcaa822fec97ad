"""Places in the code as frames: file, in-app, column, source."""

import json
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from svc.exception_chain import CallSite, chain
from svc.frames import Framer
from svc.source_files import mask_secrets


def frames_of(raising: Callable[[], Any], framer: Framer | None = None) -> list[dict[str, Any]]:
    """Frames without those of the catching."""
    try:
        raising()
    except Exception as error:  # noqa: BLE001  # any error of the test
        frames = (framer or Framer()).frames(chain(error)[0].sites)
        return [
            frame
            for frame in frames
            if frame["function"] != "frames_of" and "<lambda>" not in frame["function"]
        ]
    raise AssertionError("nothing was raised")


def site(filename: str, module: str | None = None) -> CallSite:
    code: CodeType = compile("pass", filename, "exec")
    return CallSite(code, 1, -1, module)


def in_app(filename: str, module: str | None = None, **rules: Any) -> bool:
    return bool(Framer(**rules).frames([site(filename, module)])[0]["inApp"])


STDLIB = sysconfig.get_path("stdlib")


@pytest.mark.parametrize(
    ("filename", "module", "expected"),
    [
        ("/srv/shop/pay.py", "shop.pay", True),
        ("/srv/venv/lib/python3.11/site-packages/requests/api.py", "requests.api", False),
        ("/usr/lib/python3/dist-packages/yaml/__init__.py", "yaml", False),
        (f"{STDLIB}/json/decoder.py", "json.decoder", False),
        ("<frozen importlib._bootstrap>", "importlib._bootstrap", False),
        ("<string>", "__main__", True),
        ("<string>", "attr", False),
        (str(Path(sys.modules["svc"].__file__ or "").parent / "web.py"), "svc.web", False),
        ("shop/pay.py", "shop.pay", True),
    ],
)
def test_frames_outside_libraries_are_in_app(filename: str, module: str, expected: bool) -> None:
    assert in_app(filename, module) is expected


def test_rules_of_the_application_come_first() -> None:
    vendored = "/srv/venv/lib/python3.11/site-packages/ourlib/x.py"
    assert in_app(vendored, "ourlib.x", include=["ourlib"]) is True
    assert in_app(vendored, "ourlibrary.x", include=["ourlib"]) is False
    assert in_app("/srv/shop/vendor/x.py", "vendor.x", exclude=["vendor"]) is False
    assert in_app("/srv/shop/gen/x.py", "gen.x", exclude=["/srv/shop/gen/"]) is False
    assert in_app("/srv/shop/gen/x.py", "gen.x", include="gen", exclude=["gen"]) is True
    assert in_app("<template>", "pages.home", include=["pages"]) is True


def test_file_is_relative_to_the_entry_of_sys_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (frame,) = Framer().frames([site(f"{tmp_path}/shop/pay.py")])
    assert (frame["file"], frame["absolutePath"]) == ("shop/pay.py", f"{tmp_path}/shop/pay.py")


def test_file_is_relative_to_the_project_root_where_one_is_given(tmp_path: Path) -> None:
    (frame,) = Framer(root=str(tmp_path)).frames([site(f"{tmp_path}/src/shop/pay.py")])
    assert frame["file"] == "src/shop/pay.py"


def test_file_of_the_standard_library_and_of_packages_is_relative_too() -> None:
    framer = Framer()
    (decoder,) = framer.frames([site(f"{STDLIB}/json/decoder.py")])
    assert decoder["file"] == "json/decoder.py"
    (elsewhere,) = framer.frames([site("/nowhere/in/particular.py")])
    assert elsewhere["file"] == "particular.py"


def test_home_folder_does_not_name_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/jo.smith")
    (frame,) = Framer().frames([site("/home/jo.smith/shop/pay.py")])
    assert frame["absolutePath"] == "~/shop/pay.py"
    assert "smith" not in json.dumps(frame)


def test_frame_has_function_line_column_and_source(tmp_path: Path) -> None:
    source = (
        "a = 1\nb = 2\nclass Shop:\n    def pay(self):\n        'é'; x = 1 / 0\n        return x\nz = 1\n"
    )
    file = tmp_path / "shop.py"
    file.write_text(source)
    space: dict[str, Any] = {"__name__": "shop"}
    exec(compile(source, str(file), "exec"), space)
    (frame,) = frames_of(lambda: space["Shop"]().pay())
    assert frame["function"] == "Shop.pay"
    assert (frame["line"], frame["column"]) == (5, source.splitlines()[4].index("1 / 0") + 1)
    assert frame["preContext"] == source.splitlines()[:4]
    assert frame["contextLine"] == source.splitlines()[4]
    assert frame["postContext"] == ["        return x", "z = 1"]


def test_at_most_five_lines_before_and_after(tmp_path: Path) -> None:
    source = "\n" * 20 + "raise ValueError\n" + "\n" * 20
    file = tmp_path / "long.py"
    file.write_text(source)
    (frame,) = frames_of(lambda: exec(compile(source, str(file), "exec")))
    assert (len(frame["preContext"]), len(frame["postContext"])) == (5, 5)


def test_source_context_can_be_disabled() -> None:
    def fail() -> None:
        raise ValueError

    frame = frames_of(fail, Framer(source=False))[0]
    assert not {"preContext", "contextLine", "postContext"} & frame.keys()
    assert frame["function"].endswith("fail")


def test_source_inside_an_archive_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("packed_module.py", "first = 1\ndef fail():\n    raise ValueError\n")
    monkeypatch.syspath_prepend(str(archive))
    import packed_module  # type: ignore[import-not-found]

    (frame,) = frames_of(packed_module.fail)
    assert (frame["file"], frame["preContext"]) == ("packed_module.py", ["first = 1", "def fail():"])


def test_missing_source_is_no_error() -> None:
    (frame,) = frames_of(lambda: exec(compile("\n\nraise ValueError", "<generated>", "exec"), {}))
    assert (frame["file"], frame["line"], frame["function"]) == ("<generated>", 3, "<module>")
    assert "preContext" not in frame


def test_secrets_and_persons_written_into_source_do_not_leave(tmp_path: Path) -> None:
    lines = [
        'svc.set_user({"linkBy": {"crm": "C-77001"}})',
        'svc.init(token="svc_pk_06a5w3rh1txqv8n1r9c2m4y7k0")',
        "password = 'hunter2'",
        "mail('jo@example.com')",
        'config["api_key"] = f"abcdef"',
    ]
    source = "".join(f"if 0: {line}\n" for line in lines) + "raise ValueError"
    file = tmp_path / "settings.py"
    file.write_text(source)
    (frame,) = frames_of(lambda: exec(compile(source, str(file), "exec")))
    assert [line.removeprefix("if 0: ") for line in frame["preContext"]] == [
        'svc.set_user({"linkBy": {"crm": "***"}})',
        'svc.init(token="***")',
        "password = '***'",
        "mail('***')",
        'config["api_key"] = f"***"',
    ]


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("init(release='night@2.1.0+77')", "init(release='night@2.1.0+77')"),
        ("init(release='night@2.1.0-rc.1+77')", "init(release='night@2.1.0-rc.1+77')"),
        ("notify('jo.doe+x@mail.example.co.uk')", "notify('***')"),
        ("notify('jo@163.com', 'a@b.xn--p1ai')", "notify('***', '***')"),
    ],
)
def test_a_release_is_no_mail_address(line: str, masked: str) -> None:
    assert mask_secrets(line) == masked
