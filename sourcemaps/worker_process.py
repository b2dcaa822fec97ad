"""The worker: reads maps, which may be hostile, within limits of memory and time.

`python -P -m sourcemaps.worker_process` reads questions on standard input and answers on standard output until its
input ends. It keeps the maps that it used last.
"""

import hashlib
import resource
import sys
import time
from collections import OrderedDict
from typing import Final

from sourcemaps.positions import Content, OpenMap, open_map, packed, unpacked
from sourcemaps.upload_check import Refused, check
from sourcemaps.worker_messages import (
    LENGTH_BYTES,
    Answer,
    Check,
    Checked,
    ContentMissing,
    NotUsable,
    Resolve,
    Resolved,
    decode_question,
    encode,
)

MEMORY_BYTES: Final = 1 << 30
"""Reading a map takes about ten times its size for a moment."""
CPU_SECONDS: Final = 20
"""Of one question."""
_MAX_SENTENCE: Final = 500
"""Characters: the names in it are those of the map."""
CACHE_BYTES: Final = 64 << 20
"""Of the maps that stay open, by the size of their files; in memory they take about twice that."""


class Worker:
    """Answers questions; the maps that it has open are `CACHE_BYTES` at most."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, tuple[OpenMap, int]] = OrderedDict()
        self._bytes = 0

    def answer(self, question: Check | Resolve) -> Answer:
        """The answer; any error of the library is one about the map."""
        try:
            return self._checked(question) if isinstance(question, Check) else self._resolved(question)
        except Refused as error:
            return NotUsable(str(error)[:_MAX_SENTENCE])
        except MemoryError:
            return NotUsable("reading it takes too much memory")
        except Exception as error:  # noqa: BLE001 - the library has many, for files of any content
            return NotUsable(f"it can't be read: {str(error) or type(error).__name__}"[:_MAX_SENTENCE])

    def _checked(self, question: Check) -> Checked:
        upload = question.upload
        kind, debug_id = check(upload)
        content = Content(upload.content, upload.script)
        open_map(kind, content)
        digest = hashlib.sha256(upload.content + b"\0" + upload.script).hexdigest()
        return Checked(kind, debug_id, digest, packed(content))

    def _resolved(self, question: Resolve) -> Resolved | ContentMissing:
        if question.digest not in self._open:
            if question.content is None:
                return ContentMissing()
            content = unpacked(question.content)
            self._keep(
                question.digest, open_map(question.kind, content), len(content.map) + len(content.script)
            )
        self._open.move_to_end(question.digest)
        opened, _ = self._open[question.digest]
        return Resolved(
            [opened.frames(position) for position in question.positions],
            [opened.class_name(name) for name in question.classes],
        )

    def _keep(self, digest: str, opened: OpenMap, size: int) -> None:
        self._open[digest] = opened, size
        self._bytes += size
        while self._bytes > CACHE_BYTES and len(self._open) > 1:
            _, (_, freed) = self._open.popitem(last=False)
            self._bytes -= freed


def main() -> None:
    """Answer until the input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    worker, questions, answers = Worker(), sys.stdin.buffer, sys.stdout.buffer
    while len(head := questions.read(LENGTH_BYTES)) == LENGTH_BYTES:
        question = decode_question(questions.read(int.from_bytes(head)))
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + CPU_SECONDS, hard))
        answer = encode(worker.answer(question))
        answers.write(len(answer).to_bytes(LENGTH_BYTES) + answer)
        answers.flush()


if __name__ == "__main__":
    main()
