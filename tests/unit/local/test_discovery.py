"""How commands find the servers of a running `svc up`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from local.data_dir import is_locked, locked
from local.discovery import FILE, environment, overlaid, published
from local.local_errors import StartError
from tests.eventually import eventually

ROOT = Path(__file__).parents[3]
ADDRESS = {"SVC_KAFKA_BOOTSTRAP": "127.0.0.1:1"}


def test_variables_of_the_running_servers_are_found_by_data_directory(tmp_path: Path) -> None:
    with locked(tmp_path), published(tmp_path, ADDRESS):
        assert environment(tmp_path, {"HOME": "/h"}) == ADDRESS | {"HOME": "/h"}


def test_the_environment_overrides_run_json(tmp_path: Path) -> None:
    with locked(tmp_path), published(tmp_path, ADDRESS):
        assert environment(tmp_path, {"SVC_KAFKA_BOOTSTRAP": "other:2"}) == {"SVC_KAFKA_BOOTSTRAP": "other:2"}


@pytest.mark.parametrize(
    ("base", "given"),
    [
        ({"SVC_ADMIN_PASSWORD_FILE": "/f"}, {"SVC_ADMIN_PASSWORD": "p"}),
        ({"SVC_ADMIN_PASSWORD": "p"}, {"SVC_ADMIN_PASSWORD_FILE": "/f"}),
    ],
)
def test_setting_and_its_file_variant_hide_each_other(base: dict[str, str], given: dict[str, str]) -> None:
    assert overlaid(base, given) == given


def test_nothing_is_found_after_the_end(tmp_path: Path) -> None:
    with locked(tmp_path), published(tmp_path, ADDRESS):
        pass
    assert environment(tmp_path, {}) == {}
    assert not (tmp_path / FILE).exists()


async def test_file_left_by_a_killed_process_is_ignored(tmp_path: Path) -> None:
    program = f"""
import pathlib, signal
from local.data_dir import locked
from local.discovery import published
folder = pathlib.Path({str(tmp_path)!r})
with locked(folder), published(folder, {ADDRESS!r}):
    signal.pause()
"""
    process = subprocess.Popen([sys.executable, "-P", "-c", program], cwd=ROOT)  # noqa: ASYNC220
    try:
        await eventually(lambda: environment(tmp_path, {}) == ADDRESS)
    finally:
        process.kill()
        process.wait()
    assert (tmp_path / FILE).exists()
    assert environment(tmp_path, {}) == {}


def test_file_with_secrets_is_for_its_owner_only(tmp_path: Path) -> None:
    with locked(tmp_path), published(tmp_path, ADDRESS):
        assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
        assert json.loads((tmp_path / FILE).read_text())["pid"] > 0


def test_second_lock_of_a_data_directory_is_refused(tmp_path: Path) -> None:
    with locked(tmp_path):
        assert is_locked(tmp_path)
        with pytest.raises(StartError, match="another `svc up` runs"), locked(tmp_path):
            pass
    assert not is_locked(tmp_path)


def test_directory_without_a_lock_file_is_not_locked(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / "nowhere")
