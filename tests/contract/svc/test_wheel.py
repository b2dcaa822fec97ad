"""The library as a distribution of its own: built, and imported by an isolated interpreter from the wheel alone."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import svc

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(ROOT / "svc"),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_is_named_for_the_library_and_its_version(wheel: Path) -> None:
    assert wheel.name == f"svc_reporting-{svc.__version__}-py3-none-any.whl"


def test_wheel_holds_the_package_and_needs_nothing(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith("METADATA")]
        described = archive.read(metadata).decode()
    sources = {f"svc/{path.name}" for path in (ROOT / "svc").glob("*.py")}
    assert {name for name in names if name.startswith("svc/")} == sources | {"svc/py.typed"}
    assert "Requires-Dist" not in described
    assert "Requires-Python: >=3.11" in described


def test_wheel_works_in_an_isolated_interpreter(wheel: Path, tmp_path: Path) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(wheel)!r}); import svc; "
        f"assert {wheel.name!r} in svc.__file__; "
        "svc.init(token='svc_pk_x', release='a@1+1', ingest_url='http://127.0.0.1:1', shutdown_timeout=0.1); "
        "assert svc.capture_exception(ValueError()); print(svc.__version__)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == svc.__version__
