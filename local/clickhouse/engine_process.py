"""The ClickHouse server process: `python engine_process.py DIRECTORY` runs until SIGTERM or SIGINT.

The extension module of chdb-core runs the `clickhouse local` program with the `config.xml` in its working
directory. The query starts the listeners of the configured ports and then reads a FIFO that this process
holds open. Closing the FIFO ends the query and shuts the engine down cleanly.
"""

import contextlib
import importlib.util
import os
import signal
import sys
import threading
import time
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType

STOP = {signal.SIGTERM, signal.SIGINT}
STOP_SECONDS = 60


def load_engine() -> ModuleType:
    """Load only the extension: `import chdb` would first open an in-memory engine. Raises ModuleNotFoundError."""
    package = importlib.util.find_spec("chdb")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("the PyPI package chdb-core is not installed", name="chdb")
    folder = Path(package.submodule_search_locations[0])
    loader = ExtensionFileLoader("_chdb", str(folder / "_chdb.abi3.so"))
    spec = importlib.util.spec_from_loader("_chdb", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # It searches its libraries in the current directory.
    with contextlib.chdir(folder):
        loader.exec_module(module)
    return module


class Engine(threading.Thread):
    """The engine's thread; if the engine ends by itself the process gets SIGTERM."""

    def __init__(self, chdb: ModuleType, directory: Path, fifo: Path) -> None:
        super().__init__(daemon=True, name="engine")
        self.chdb, self.directory = chdb, directory
        # `users.xml` limits this user's query to this length.
        lines = f"SELECT 1 FROM file('{fifo}', 'LineAsString')"  # noqa: S608 - a name of ours
        ports = (directory / "config.xml").read_text()
        tcp = "SYSTEM START LISTEN TCP; " if "<tcp_port>" in ports else ""
        self.query = f"SYSTEM START LISTEN HTTP; {tcp}{lines}"
        self.end = ""

    def run(self) -> None:
        """Block in the engine until its query has ended."""
        try:
            self.chdb.query(self.query, "TSV", path=str(self.directory / "data")).bytes()
            self.end = "the engine's query ended"
        except Exception as error:  # noqa: BLE001 - the main thread reports any error of the engine
            self.end = str(error)
        os.kill(os.getpid(), signal.SIGTERM)


def _await_end(engine: Engine, fifo: Path) -> bool:
    """Join the engine; a reader that opened the FIFO late needs another end of file."""
    limit = time.monotonic() + STOP_SECONDS
    while engine.is_alive() and time.monotonic() < limit:
        engine.join(0.05)
        with contextlib.suppress(OSError):
            os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    return not engine.is_alive()


def serve(directory: Path) -> int:
    """Run the engine on `directory` (with its `config.xml`) until a signal; returns the exit status."""
    # Before the engine starts threads, which would otherwise receive the signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP)
    os.environ["TZ"] = "UTC"  # the engine ignores <timezone>
    time.tzset()
    chdb = load_engine()
    os.chdir(directory)
    if hasattr(chdb, "set_signal_handlers_enabled"):
        chdb.set_signal_handlers_enabled(False)
    fifo = directory / "alive.fifo"
    fifo.unlink(missing_ok=True)
    os.mkfifo(fifo, 0o600)
    engine = Engine(chdb, directory, fifo)
    engine.start()
    # O_RDWR: the open must not wait for the reader.
    writer = os.open(fifo, os.O_RDWR)
    signal.sigwait(STOP)
    ended_early = engine.end
    os.close(writer)
    stopped = _await_end(engine, fifo)
    if ended_early:
        sys.stderr.write(f"ClickHouse ended by itself: {ended_early}\n")
    sys.stderr.flush()
    return 1 if ended_early or not stopped else 0


if __name__ == "__main__":
    # Skip the interpreter's shutdown: the extension's destructors may hang.
    os._exit(serve(Path(sys.argv[1]).resolve()))
