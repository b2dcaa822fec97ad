"""Trains a shipped payload dictionary from JSONL files of events: `python -m bench.train_dictionary NUMBER FILE...`.

A dictionary in use is never replaced: stored payloads name it. A better one gets the next number. Those of a deployment are made by
`svc dictionary train`.
"""

import gzip
import sys
from pathlib import Path

from cli.dictionary_training import train

SIZE = 65_536


def main() -> None:
    """Write a dictionary of 64 KB from the events in the files."""
    number, *names = sys.argv[1:]
    out, files = Path(f"schemas/dictionaries/{int(number)}.zstd-dictionary"), map(Path, names)
    samples: list[bytes] = []
    for file in files:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
            samples.extend(line.rstrip(b"\n") for line in lines)
    out.write_bytes(train(samples, int(number), SIZE))
    print(f"{out}: {SIZE} bytes from {len(samples)} events")


if __name__ == "__main__":
    main()
