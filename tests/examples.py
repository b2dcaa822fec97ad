"""The applications in `docs/examples`, each run in a process by the command in its docstring."""

import os
import re
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.ports import free_port

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples"
RELEASE = "shop@1.4.2+318"
"""Of each example, as it is shipped."""
COMMANDS = {
    path.stem: re.findall("`(.+?)`", path.read_text(encoding="utf-8"))[0] for path in EXAMPLES.glob("*.py")
}
WEB = {
    "fastapi_app": ("/orders/{number}", ("--port", "PORT")),
    "flask_app": ("/orders/<int:number>", ("--port", "PORT")),
    "django_app": ("/orders/<int:number>", ("--noreload", "PORT")),
}
"""The web applications: the route of their orders, of which order 7 crashes, and the arguments that set their port."""


@contextmanager
def started(
    name: str, folder: Path, environ: dict[str, str], *more: str, release: str = RELEASE
) -> Iterator[dict[str, str]]:
    """Run a copy of the example in the folder, with more arguments, and give its environment.

    `environ` says where it reports to.
    """
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    (folder / f"{name}.py").write_text(source.replace(RELEASE, release), encoding="utf-8")
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
        **environ,
    }
    with (folder / "output").open("ab") as output:
        program = subprocess.Popen(
            [*shlex.split(COMMANDS[name]), *more],
            env=environment, cwd=folder, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield environment
    finally:
        program.terminate()
        try:
            program.wait(120)
        finally:
            program.kill()


@contextmanager
def shop(name: str, folder: Path, environ: dict[str, str], release: str = RELEASE) -> Iterator[str]:
    """A web application on a free port; gives its address, which may not be listened at yet."""
    port = str(free_port())
    arguments = (port if word == "PORT" else word for word in WEB[name][1])
    with started(name, folder, environ, *arguments, release=release):
        yield f"http://127.0.0.1:{port}"


def status(url: str) -> int | None:
    """The status of the answer; None while the connection is refused."""
    try:
        with urllib.request.urlopen(url) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return None
