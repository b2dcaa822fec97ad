"""Workers as separate processes that can be killed."""

import os
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from local.ports import free_port
from tests.forked import ForkedProcess


class WorkerProcess:
    """One `svc processors`, or another process, started with only the variables it needs."""

    def __init__(
        self,
        bootstrap: str,
        prefix: str,
        folder: Path,
        name: str = "0",
        *,
        module: str = "cli.processors",
        **extra: str,
    ) -> None:
        self.port = free_port()
        self.log = folder / f"worker-{name}.log"
        self._environ = {
            "PATH": os.environ["PATH"],
            "SVC_KAFKA_BOOTSTRAP": bootstrap,
            "SVC_TOPIC_PREFIX": prefix,
            "SVC_PROCESSORS_APP": f"{prefix}processors",
            "SVC_PROCESSORS_WORKER": name,
            "SVC_PROCESSORS_HEALTH_PORT": str(self.port),
            "SVC_NOTIFY_HEALTH_PORT": str(self.port),
            "SVC_DATA_DIR": str(folder),
            "SVC_KAFKA_SESSION_SECONDS": "3",
            **extra,
        }
        self._module = module
        self._process: ForkedProcess | None = None

    def start(self) -> "WorkerProcess":
        """Start, or start again."""
        self._process = ForkedProcess(self._module, self._environ, self.log)
        return self

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Kill -9."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Stop it from running, as a machine that hangs."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it run again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        return self._end(signal.SIGTERM)

    def wait(self, timeout: float = 60) -> int:
        """The exit code, once it has ended by itself."""
        assert self._process is not None
        return self._process.wait(timeout)

    def _end(self, how: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(how)
        try:
            return self._process.wait(120)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def ready(self) -> bool:
        """Whether `readyz` says so."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=30) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels; 0 if it is missing or the process doesn't answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
                text = answer.read().decode()
        except OSError:
            return 0.0
        lines = [line for line in text.splitlines() if line.startswith((f"{name} ", f"{name}{{"))]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)
