"""The two distributions: built, installed side by side, and uninstalled separately."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import svc

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PACKAGES = {
    *("broker", "cli", "control", "dashboard", "edge", "grouping", "rebuild"),
    *("local", "notify", "processors", "query", "runtime", "schemas", "sourcemaps", "storage"),
}


def pip(*words: str | Path, python: Path | None = None) -> None:
    at = [] if python is None else ["--python", str(python)]
    command = [
        sys.executable,
        "-P",
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        *at,
        *map(str, words),
    ]
    subprocess.run(command, check=True, capture_output=True)


def built(source: Path, folder: Path) -> Path:
    """A wheel, built with the installed packages and nothing from an index."""
    pip("wheel", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source)
    (made,) = folder.glob("*.whl")
    return made


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def metadata(wheel: Path) -> str:
    (name,) = [name for name in names(wheel) if name.endswith("METADATA")]
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(name).decode()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT / "svc", tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, tmp_path_factory.mktemp("service"))


def test_wheel_is_named_for_the_library_and_its_version(library: Path) -> None:
    assert library.name == f"svc_reporting-{svc.__version__}-py3-none-any.whl"


def test_library_holds_its_package_and_needs_nothing(library: Path) -> None:
    sources = {f"svc/{path.name}" for path in (ROOT / "svc").glob("*.py")}
    assert {name for name in names(library) if ".dist-info/" not in name} == sources | {"svc/py.typed"}
    assert "Requires-Dist" not in metadata(library)
    assert "Requires-Python: >=3.11" in metadata(library)


def test_service_has_only_its_packages_and_depends_on_the_library(service: Path) -> None:
    assert {name.split("/")[0] for name in names(service) if ".dist-info/" not in name} == {
        *PACKAGES,
        "svc-js",
    }
    assert [name for name in names(service) if "/memory/" in name] == []
    assert "Requires-Dist: svc-reporting==0.2.*" in metadata(service)


def test_no_file_belongs_to_both(library: Path, service: Path) -> None:
    assert names(library) & names(service) == set()


@pytest.mark.parametrize(
    ("removed", "left"),
    [("svc-service", "import svc; svc.init"), ("svc-reporting", "import " + ", ".join(sorted(PACKAGES)))],
)
def test_one_can_be_uninstalled_and_the_other_still_imports(
    library: Path, service: Path, tmp_path: Path, removed: str, left: str
) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    pip("install", "--no-index", "--no-deps", library, service, python=python)
    pip("uninstall", "--yes", removed, python=python)
    subprocess.run([python, "-I", "-c", left], cwd=tmp_path, check=True)


def test_library_works_in_an_isolated_interpreter(library: Path, tmp_path: Path) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(library)!r}); import svc; "
        f"assert {library.name!r} in svc.__file__; "
        "svc.init(token='svc_pk_x', release='a@1+1', ingest_url='http://127.0.0.1:1', shutdown_timeout=0.1); "
        "assert svc.capture_exception(ValueError()); print(svc.__version__)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == svc.__version__
