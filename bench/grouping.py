"""Quality and cost of the grouping: `python -m bench.grouping [--data FILE --labels FILE] [--check FILE]`.

Without files it uses the labelled set of the tests. The cost's floor, measured in the same run, is decoding the few fields
that grouping reads.
"""

import gzip
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import NamedTuple

import click
import msgspec

from bench.grouping_scores import Label, Scores, score
from grouping.fingerprint import Fingerprint, GroupingEvent, fingerprint

SAMPLES = Path(__file__).parent.parent / "tests" / "samples" / "grouping"
TOLERANCE = 0.005
"""Tolerated decrease of a score below the baseline."""
_ROUNDS = 3
_HEADLINES = ("pair_precision", "pair_recall", "pair_f1", "bcubed_precision", "bcubed_recall", "bcubed_f1")
_NEAR_MISS = "near-miss"


class Identified(GroupingEvent, gc=False):
    """An event with its id, which identifies its label."""

    id: str = ""


class Cost(NamedTuple):
    """Mean CPU time per event in µs."""

    floor: float
    first: float
    again: float


def main() -> None:
    """Run as a module."""
    command()


@click.command()
@click.option(
    "--data", "data", multiple=True, type=click.Path(path_type=Path), help="Events, JSON lines; .gz too."
)
@click.option(
    "--labels", multiple=True, type=click.Path(path_type=Path), help="Their labels, JSON lines; .gz too."
)
@click.option("--check", type=click.Path(path_type=Path), help="Fail if a score is below this baseline.")
@click.option("--write", type=click.Path(path_type=Path), help="Write the scores as a baseline.")
def command(data: Sequence[Path], labels: Sequence[Path], check: Path | None, write: Path | None) -> None:
    """Score the grouping of labelled events."""
    data = data or sorted(SAMPLES.glob("*.events.jsonl*"))
    labels = labels or sorted(SAMPLES.glob("*.labels.jsonl*"))
    lines = [line for path in data for line in read_lines(path)]
    fingerprints, cost = measure(lines)
    decode_label = msgspec.json.Decoder(Label).decode
    scores = score(
        [decode_label(line) for path in labels for line in read_lines(path)],
        {event_id: print_.hex for event_id, print_ in fingerprints.items()},
    )
    _show(scores, cost)
    if write is not None:
        write.write_bytes(msgspec.json.format(msgspec.json.encode(scores), indent=2) + b"\n")
    if check is not None:
        falls = compare(scores, msgspec.json.decode(check.read_bytes(), type=Scores))
        for fall in falls:
            click.echo(fall, err=True)
        sys.exit(1 if falls else 0)


def read_lines(path: Path) -> list[bytes]:
    """The non-blank lines of a file, decompressed for `.gz`."""
    raw = path.read_bytes()
    return [
        line for line in (gzip.decompress(raw) if path.suffix == ".gz" else raw).splitlines() if line.strip()
    ]


def measure(lines: Sequence[bytes]) -> tuple[dict[str, Fingerprint], Cost]:
    """Fingerprints by event id, and their cost: of the first round, and of the best of several more."""
    decode = msgspec.json.Decoder(Identified).decode
    floor = min(_timed(lambda: [decode(line) for line in lines]) for _ in range(_ROUNDS))
    events = [decode(line) for line in lines]
    fingerprints: dict[str, Fingerprint] = {}
    first = _timed(lambda: fingerprints.update({event.id: fingerprint(event) for event in events}))
    again = min(_timed(lambda: [fingerprint(event) for event in events]) for _ in range(_ROUNDS))
    share = 1e6 / max(1, len(lines))
    return fingerprints, Cost(floor * share, first * share, again * share)


def compare(scores: Scores, baseline: Scores) -> list[str]:
    """A message for each score below the baseline by more than the tolerance."""
    falls = [
        f"{name}: {getattr(scores, name):.4f}, baseline {getattr(baseline, name):.4f}"
        for name in _HEADLINES
        if getattr(scores, name) < getattr(baseline, name) - TOLERANCE
    ]
    for name, before in baseline.classes.items():
        now = scores.classes.get(name)
        if now is None:
            falls.append(f"class {name}: missing")
        elif before.recall is not None and (now.recall or 0.0) < before.recall - TOLERANCE:
            falls.append(f"recall of {name}: {now.recall or 0.0:.4f}, baseline {before.recall:.4f}")
        elif name.startswith(_NEAR_MISS) and now.false_merges > before.false_merges:
            falls.append(f"wrong merges of {name}: {now.false_merges}, baseline {before.false_merges}")
    return falls


def _timed(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start


def _show(scores: Scores, cost: Cost) -> None:
    print(f"{scores.events} events, {scores.groups} groups, {scores.issues} issues")
    print(
        f"pairs    precision {scores.pair_precision:.3f}  recall {scores.pair_recall:.3f}  F1 {scores.pair_f1:.3f}"
    )
    print(
        f"B-cubed  precision {scores.bcubed_precision:.3f}  recall {scores.bcubed_recall:.3f}  F1 {scores.bcubed_f1:.3f}"
    )
    print(f"{'class':26s}{'pairs':>7s}{'recall':>8s}{'wrong merges':>14s}")
    for name, one in scores.classes.items():
        recall = "-" if one.recall is None else f"{one.recall:.3f}"
        print(f"{name:26s}{one.pairs:7d}{recall:>8s}{one.false_merges:14d}")
    print(
        f"cost per event: {cost.first:.1f} µs the first time, {cost.again:.1f} µs again; "
        f"floor (decoding alone) {cost.floor:.1f} µs"
    )


if __name__ == "__main__":
    main()
