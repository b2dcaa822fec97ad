"""Quality and cost of the grouping: `python -m bench.grouping [--data FILE --labels FILE] [--check FILE]`.

Without files it uses the labelled set of the tests. After the scores of all events it shows those of each
platform and data set, of errors that were found in the open and of those that were made; of each pitfall; and
of pairs from documentation (`bench.grouping_pairs`). The cost's floor, measured in the same run, is decoding
the few fields that grouping reads.
"""

import gzip
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Final, NamedTuple

import click
import msgspec
from msgspec import Struct

from bench.grouping_pairs import PairScore, read_pairs, score_pairs, wrong_pairs
from bench.grouping_scores import Label, Scores, score
from bench.report import end, falls, save
from grouping.fingerprint import GroupingEvent, fingerprint

SAMPLES: Final = Path(__file__).parent.parent / "tests" / "samples" / "grouping"
TOLERANCE: Final = 0.005
"""Tolerated decrease of a score below the baseline."""
_ROUNDS: Final = 3
_HEADLINES: Final = (
    "pair_precision",
    "pair_recall",
    "pair_f1",
    "bcubed_precision",
    "bcubed_recall",
    "bcubed_f1",
)


class Identified(GroupingEvent, gc=False):
    """An event with its id, which identifies its label."""

    id: str = ""


class SliceScore(Struct, frozen=True, rename="camel"):
    """The scores of a part of the events."""

    events: int
    pair_precision: float
    pair_f1: float
    bcubed_f1: float


class Evaluation(Scores, frozen=True, rename="camel"):
    """All scores: `slices` by platform, data set, and whether errors were found or made; `pairs` by kind."""

    slices: dict[str, SliceScore]
    pairs: dict[str, PairScore]


class Cost(NamedTuple):
    """Mean CPU time per event in µs."""

    floor: float
    first: float
    again: float


@click.command()
@click.option("--data", multiple=True, type=click.Path(path_type=Path), help="Events, JSON lines; .gz too.")
@click.option(
    "--labels", multiple=True, type=click.Path(path_type=Path), help="Their labels, JSON lines; .gz too."
)
@click.option("--check", type=click.Path(path_type=Path), help="Fail if a score is below this baseline.")
@click.option("--least-f1", default=0.0, help="Fail if the F1 of pairs is below this.")
@click.option("--write", type=click.Path(path_type=Path), help="Write the scores as a baseline.")
@click.option("--wrong", is_flag=True, help="Name the pairs that are not as documented.")
def command(
    data: Sequence[Path],
    labels: Sequence[Path],
    check: Path | None,
    least_f1: float,
    write: Path | None,
    wrong: bool,
) -> None:
    """Score the grouping of labelled events."""
    lines = [line for path in data or sorted(SAMPLES.glob("*.events.jsonl*")) for line in read_lines(path)]
    events, grouping, cost = measure(lines)
    decode = msgspec.json.Decoder(Label).decode
    known = [
        label
        for path in labels or sorted(SAMPLES.glob("*.labels.jsonl*"))
        for label in map(decode, read_lines(path))
        if label.id in events
    ]
    scores = evaluate(known, events, grouping)
    _show(scores, cost)
    if wrong:
        for pair in wrong_pairs(read_pairs(), _issue):
            print(f"{'join' if pair.same else 'part'} ({pair.kind}): {pair.about}")
    if write is not None:
        save(scores, write)
    worse = [] if check is None else compare(scores, msgspec.json.decode(check.read_bytes(), type=Evaluation))
    if scores.pair_f1 < least_f1:
        worse.append(f"F1 of pairs: {scores.pair_f1:.4f}, at least {least_f1}")
    end(worse)


def _issue(event: GroupingEvent) -> str:
    return fingerprint(event).hex


def read_lines(path: Path) -> list[bytes]:
    """The non-blank lines of a file, decompressed for `.gz`."""
    raw = path.read_bytes()
    return [
        line for line in (gzip.decompress(raw) if path.suffix == ".gz" else raw).splitlines() if line.strip()
    ]


def measure(lines: Sequence[bytes]) -> tuple[dict[str, GroupingEvent], dict[str, str], Cost]:
    """Events and their issues by event id, and the cost of the first round and of the best of several more."""
    decode = msgspec.json.Decoder(Identified).decode
    floor = min(_timed(lambda: [decode(line) for line in lines]) for _ in range(_ROUNDS))
    events = {event.id: event for event in map(decode, lines)}
    grouping: dict[str, str] = {}
    first = _timed(lambda: grouping.update({name: _issue(event) for name, event in events.items()}))
    again = min(_timed(lambda: [_issue(event) for event in events.values()]) for _ in range(_ROUNDS))
    share = 1e6 / max(1, len(lines))
    return dict(events), grouping, Cost(floor * share, first * share, again * share)


def evaluate(
    labels: Sequence[Label], events: Mapping[str, GroupingEvent], grouping: Mapping[str, str]
) -> Evaluation:
    """All scores of a grouping, a map from event id to issue."""

    def part(members: Sequence[Label]) -> SliceScore:
        scores = score(members, grouping)
        return SliceScore(scores.events, scores.pair_precision, scores.pair_f1, scores.bcubed_f1)

    slices: dict[str, list[Label]] = {}
    for label in labels:
        how = "found" if label.how == "natural" else "made"
        for name in (events[label.id].platform or "", how, label.dataset):
            if name:
                slices.setdefault(name, []).append(label)
    return Evaluation(
        **msgspec.structs.asdict(score(labels, grouping)),
        slices={name: part(members) for name, members in sorted(slices.items())},
        pairs=score_pairs(read_pairs(), _issue),
    )


def compare(scores: Evaluation, baseline: Evaluation) -> list[str]:
    """A sentence for each score that fell by more than the tolerance, and each further wrong merge of near misses."""
    worse = falls(_figures(scores), _figures(baseline), TOLERANCE)
    for name, kind in baseline.pairs.items():
        right = scores.pairs.get(name, PairScore(0, 0, 0, 0))
        if right.joined < kind.joined or right.apart < kind.apart:
            worse.append(
                f"pairs of {name}: {right.joined} and {right.apart}, they were {kind.joined} and {kind.apart}"
            )
    for name, before in baseline.classes.items():
        now = scores.classes.get(name)
        if name.startswith("near-miss") and now is not None and now.false_merges > before.false_merges:
            worse.append(f"wrong merges of {name}: {now.false_merges}, they were {before.false_merges}")
    return worse


def _figures(scores: Evaluation) -> dict[str, float]:
    """The figures that must not fall, by name."""
    figures = {name: getattr(scores, name) for name in _HEADLINES}
    for name, part in scores.slices.items():
        figures[f"pair precision of {name}"] = part.pair_precision
        figures[f"pair F1 of {name}"] = part.pair_f1
    for name, pitfall in scores.classes.items():
        if pitfall.recall is not None:
            figures[f"recall of {name}"] = pitfall.recall
    return figures


def _timed(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start


def _show(scores: Evaluation, cost: Cost) -> None:
    print(f"{scores.events} events, {scores.groups} groups, {scores.issues} issues")
    for name, precision, recall, f1 in (
        ("pairs", scores.pair_precision, scores.pair_recall, scores.pair_f1),
        ("B-cubed", scores.bcubed_precision, scores.bcubed_recall, scores.bcubed_f1),
    ):
        print(f"{name:8s} precision {precision:.3f}  recall {recall:.3f}  F1 {f1:.3f}")
    print(f"{'events of':26s}{'events':>7s}{'precision':>11s}{'F1':>7s}{'B-cubed':>9s}")
    for name, part in scores.slices.items():
        print(
            f"{name:26s}{part.events:7d}{part.pair_precision:11.3f}{part.pair_f1:7.3f}{part.bcubed_f1:9.3f}"
        )
    print(f"{'documented pairs':26s}{'joined':>14s}{'apart':>14s}")
    for name, kind in scores.pairs.items():
        print(f"{name:26s}{kind.joined:>7d} of {kind.to_join:<3d}{kind.apart:>7d} of {kind.to_part:<3d}")
    print(f"{'pitfall':26s}{'pairs':>7s}{'recall':>8s}{'wrong merges':>14s}")
    for name, one in scores.classes.items():
        share = "-" if one.recall is None else f"{one.recall:.3f}"
        print(f"{name:26s}{one.pairs:7d}{share:>8s}{one.false_merges:14d}")
    print(
        f"cost per event: {cost.first:.1f} µs the first time, {cost.again:.1f} µs again; "
        f"floor (decoding alone) {cost.floor:.1f} µs"
    )


if __name__ == "__main__":
    command()
