"""Quality and cost of the grouping: `python -m bench.grouping [--data FILE --labels FILE] [--check FILE]`.

Without files it uses the labelled set of the tests. Beside the scores of all events it shows those of each platform, of errors that were found
in the open and of those that were made; of projects without what was learnt from them alone (`bench.grouping_held_out`), and with what grouping learns of them
(`bench.grouping_facts`); of boundary pairs (`bench.grouping_boundary`); and of pairs from documentation (`bench.grouping_pairs`). The cost's floor, measured in the same run, is decoding
the few fields that grouping reads.
"""

import gzip
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import NamedTuple

import click
import msgspec
from msgspec import Struct

from bench.grouping_boundary import BoundaryScore, score_boundary
from bench.grouping_facts import learn_all
from bench.grouping_held_out import HoldOut
from bench.grouping_joins import Joins, JoinScore, joins_of
from bench.grouping_pairs import PairScore, read_pairs, score_pairs, wrong_pairs
from bench.grouping_scores import Label, Scores, score
from grouping.fingerprint import CURRENT_VERSION, VERSIONS, Fingerprint, GroupingEvent, fingerprint

SAMPLES = Path(__file__).parent.parent / "tests" / "samples" / "grouping"
TOLERANCE = 0.005
"""Tolerated decrease of a score below the baseline."""
MOST_WRONG = 0.01
"""Tolerated wrong joins, as a share of the right ones."""
_ROUNDS = 3
_HEADLINES = ("pair_precision", "pair_recall", "pair_f1", "bcubed_precision", "bcubed_recall", "bcubed_f1")
_NEAR_MISS = "near-miss"


class Identified(GroupingEvent, gc=False):
    """An event with its id, which identifies its label."""

    id: str = ""


class HeldOutScore(Struct, frozen=True, rename="camel"):
    """Scores of projects without what was learnt from them; `gap` is what F1 loses."""

    pair_precision: float
    pair_f1: float
    gap: float


class SliceScore(Struct, frozen=True, rename="camel"):
    """The scores of a part of the events, and of its boundary pairs."""

    events: int
    pair_precision: float
    pair_f1: float
    bcubed_f1: float
    boundary: BoundaryScore
    held_out: HeldOutScore


class Evaluation(Scores, frozen=True, rename="camel"):
    """All scores: `slices` by platform, and by whether errors were found or made; `pairs` by kind."""

    held_out: HeldOutScore
    slices: dict[str, SliceScore]
    pairs: dict[str, PairScore]
    joins: JoinScore = JoinScore()


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
@click.option("--most-gap", type=float, help="Fail if held-out F1 is lower than the plain one by more.")
@click.option("--write", type=click.Path(path_type=Path), help="Write the scores as a baseline.")
@click.option("--version", type=click.Choice(list(VERSIONS)), default=CURRENT_VERSION, show_default=True)
@click.option("--wrong", is_flag=True, help="Name the pairs that are not as documented.")
@click.option("--learnt", is_flag=True, help="Name the entries that one project alone needs.")
def command(
    data: Sequence[Path],
    labels: Sequence[Path],
    check: Path | None,
    most_gap: float | None,
    write: Path | None,
    version: str,
    wrong: bool,
    learnt: bool,
) -> None:
    """Score the grouping of labelled events."""
    data = data or sorted(SAMPLES.glob("*.events.jsonl*"))
    labels = labels or sorted(SAMPLES.glob("*.labels.jsonl*"))
    lines = [line for path in data for line in read_lines(path)]
    events = {event.id: event for event in map(msgspec.json.Decoder(Identified).decode, lines)}
    fingerprints, cost = measure(lines, version)
    decode_label = msgspec.json.Decoder(Label).decode
    known = [decode_label(line) for path in labels for line in read_lines(path)]
    known = [label for label in known if label.id in events]
    hold_out = HoldOut(
        {label.id: events[label.id] for label in known},
        lambda event: fingerprint(event, version=version).hex,
    )
    held_out = hold_out.by({label.id: label.project for label in known})
    grouping = {event_id: found.hex for event_id, found in fingerprints.items()}
    joins = joins_of(known, events, fingerprints, version)
    scores = msgspec.structs.replace(
        evaluate(known, events, grouping, held_out.issues, version), joins=joins.score
    )
    _show(scores, cost)
    _show_joins(
        joins, score(known, {event: joins.joined.get(name, name) for event, name in grouping.items()})
    )
    facts = learn_all(known, events, version)
    print(
        f"learnt of {len(facts.by_project)} projects {sum(map(len, facts.by_project.values()))} facts;"
        f" F1 with them {score(known, facts.grouping).pair_f1:.3f}"
    )
    if all(label.dataset for label in known):
        by_dataset = score(known, hold_out.by({label.id: label.dataset for label in known}).issues)
        print(
            f"held out by data set: precision {by_dataset.pair_precision:.3f}  F1 {by_dataset.pair_f1:.3f}"
            f"  gap {scores.pair_f1 - by_dataset.pair_f1:.3f}"
        )
    if learnt:
        for project, entries in sorted(held_out.learnt.items()):
            print(project, *entries, sep="\n    ")
    if wrong:
        for pair in wrong_pairs(read_pairs(), lambda event: fingerprint(event, version=version).hash):
            print(f"{'join' if pair.same else 'part'} ({pair.kind}): {pair.about}")
    if write is not None:
        write.write_bytes(msgspec.json.format(msgspec.json.encode(scores), indent=2) + b"\n")
    falls = [] if check is None else compare(scores, msgspec.json.decode(check.read_bytes(), type=Evaluation))
    if most_gap is not None and scores.held_out.gap > most_gap:
        falls.append(f"gap between plain and held-out F1: {scores.held_out.gap:.4f}, at most {most_gap}")
    for fall in falls:
        click.echo(fall, err=True)
    sys.exit(1 if falls else 0)


def read_lines(path: Path) -> list[bytes]:
    """The non-blank lines of a file, decompressed for `.gz`."""
    raw = path.read_bytes()
    return [
        line for line in (gzip.decompress(raw) if path.suffix == ".gz" else raw).splitlines() if line.strip()
    ]


def measure(lines: Sequence[bytes], version: str) -> tuple[dict[str, Fingerprint], Cost]:
    """Fingerprints by event id, and their cost: of the first round, and of the best of several more."""
    decode = msgspec.json.Decoder(Identified).decode
    floor = min(_timed(lambda: [decode(line) for line in lines]) for _ in range(_ROUNDS))
    events = [decode(line) for line in lines]
    fingerprints: dict[str, Fingerprint] = {}
    first = _timed(
        lambda: fingerprints.update({event.id: fingerprint(event, version=version) for event in events})
    )
    again = min(
        _timed(lambda: [fingerprint(event, version=version) for event in events]) for _ in range(_ROUNDS)
    )
    share = 1e6 / max(1, len(lines))
    return fingerprints, Cost(floor * share, first * share, again * share)


def evaluate(
    labels: Sequence[Label],
    events: Mapping[str, GroupingEvent],
    grouping: Mapping[str, str],
    held_out: Mapping[str, str],
    version: str,
) -> Evaluation:
    """All scores of a grouping and of the held-out one, maps from event id to fingerprint."""

    def without(members: Sequence[Label], plain: Scores) -> HeldOutScore:
        scores = score(members, held_out)
        return HeldOutScore(scores.pair_precision, scores.pair_f1, plain.pair_f1 - scores.pair_f1)

    def part(members: Sequence[Label]) -> SliceScore:
        scores = score(members, grouping)
        boundary = score_boundary(members, events, grouping)
        return SliceScore(
            *(scores.events, scores.pair_precision, scores.pair_f1, scores.bcubed_f1),
            *(boundary, without(members, scores)),
        )

    slices: dict[str, list[Label]] = {}
    for label in labels:
        for name in (events[label.id].platform or "", "found" if label.how == "natural" else "made"):
            slices.setdefault(name, []).append(label)
    scores = score(labels, grouping)
    return Evaluation(
        **msgspec.structs.asdict(scores),
        held_out=without(labels, scores),
        slices={name: part(members) for name, members in sorted(slices.items())},
        pairs=score_pairs(read_pairs(), lambda event: fingerprint(event, version=version).hash),
    )


def compare(scores: Evaluation, baseline: Evaluation) -> list[str]:
    """A message for each score below the baseline by more than the tolerance."""
    falls = [
        f"{name}: {getattr(scores, name):.4f}, baseline {getattr(baseline, name):.4f}"
        for name in _HEADLINES
        if getattr(scores, name) < getattr(baseline, name) - TOLERANCE
    ]
    falls += _grown_gap("all events", scores.held_out, baseline.held_out)
    if scores.joins.wrong > scores.joins.right * MOST_WRONG or scores.joins.right < baseline.joins.right:
        falls.append(
            f"joins: {scores.joins.right} right, {scores.joins.wrong} wrong, baseline {baseline.joins.right} right"
        )
    for name, kind in baseline.pairs.items():
        right = scores.pairs.get(name, PairScore(0, 0, 0, 0))
        if right.joined < kind.joined or right.apart < kind.apart:
            falls.append(
                f"pairs of {name}: {right.joined} and {right.apart}, baseline {kind.joined} and {kind.apart}"
            )
    for name, part in baseline.slices.items():
        falls += _falls_of_slice(name, scores.slices.get(name), part)
    for name, before in baseline.classes.items():
        now = scores.classes.get(name)
        if now is None:
            falls.append(f"class {name}: missing")
        elif before.recall is not None and (now.recall or 0.0) < before.recall - TOLERANCE:
            falls.append(f"recall of {name}: {now.recall or 0.0:.4f}, baseline {before.recall:.4f}")
        elif name.startswith(_NEAR_MISS) and now.false_merges > before.false_merges:
            falls.append(f"wrong merges of {name}: {now.false_merges}, baseline {before.false_merges}")
    return falls


def _falls_of_slice(name: str, now: SliceScore | None, before: SliceScore) -> list[str]:
    if now is None:
        return [f"{name}: missing"]
    figures = {
        "pair precision": (now.pair_precision, before.pair_precision),
        "pair F1": (now.pair_f1, before.pair_f1),
        "boundary precision": (now.boundary.precision, before.boundary.precision),
        "boundary recall": (now.boundary.recall, before.boundary.recall),
    }
    return [
        f"{figure} of {name}: {found:.4f}, baseline {kept:.4f}"
        for figure, (found, kept) in figures.items()
        if found < kept - TOLERANCE
    ] + _grown_gap(name, now.held_out, before.held_out)


def _grown_gap(name: str, now: HeldOutScore, before: HeldOutScore) -> list[str]:
    """More rules of one project alone: they may say nothing of others."""
    if now.gap <= before.gap + TOLERANCE:
        return []
    return [f"gap between plain and held-out F1 of {name}: {now.gap:.4f}, baseline {before.gap:.4f}"]


def _timed(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start


def _show(scores: Evaluation, cost: Cost) -> None:
    print(f"{scores.events} events, {scores.groups} groups, {scores.issues} issues")
    print(
        f"pairs    precision {scores.pair_precision:.3f}  recall {scores.pair_recall:.3f}  F1 {scores.pair_f1:.3f}"
    )
    print(
        f"B-cubed  precision {scores.bcubed_precision:.3f}  recall {scores.bcubed_recall:.3f}  F1 {scores.bcubed_f1:.3f}"
    )
    held_out = scores.held_out
    print(
        f"held out precision {held_out.pair_precision:.3f}  F1 {held_out.pair_f1:.3f}  gap {held_out.gap:.3f}"
    )
    print(
        f"{'events of':26s}{'events':>7s}{'precision':>11s}{'F1':>7s}{'B-cubed':>9s}{'held out: precision':>21s}{'F1':>7s}{'gap':>7s}"
        f"{'boundary pairs':>16s}{'precision':>11s}{'recall':>8s}"
    )
    for name, part in scores.slices.items():
        edge, held_out = part.boundary, part.held_out
        print(
            f"{name:26s}{part.events:7d}{part.pair_precision:11.3f}{part.pair_f1:7.3f}{part.bcubed_f1:9.3f}"
            f"{held_out.pair_precision:21.3f}{held_out.pair_f1:7.3f}{held_out.gap:7.3f}"
            f"{edge.pairs:16d}{edge.precision:11.3f}{edge.recall:8.3f}"
        )
    print(f"{'documented pairs':26s}{'joined':>14s}{'apart':>14s}")
    for name, kind in scores.pairs.items():
        print(f"{name:26s}{kind.joined:>7d} of {kind.to_join:<3d}{kind.apart:>7d} of {kind.to_part:<3d}")
    print(f"{'class':26s}{'pairs':>7s}{'recall':>8s}{'wrong merges':>14s}")
    for name, one in scores.classes.items():
        recall = "-" if one.recall is None else f"{one.recall:.3f}"
        print(f"{name:26s}{one.pairs:7d}{recall:>8s}{one.false_merges:14d}")
    print(
        f"cost per event: {cost.first:.1f} µs the first time, {cost.again:.1f} µs again; "
        f"floor (decoding alone) {cost.floor:.1f} µs"
    )


def _show_joins(joins: Joins, after: Scores) -> None:
    found = joins.score
    print(
        f"joined by likeness {found.right} right, {found.wrong} wrong; suggested {found.suggested_right} right,"
        f" {found.suggested_wrong} wrong; F1 with them {after.pair_f1:.3f}, precision {after.pair_precision:.3f};"
        f" {joins.micros:.0f} µs a new fingerprint"
    )


if __name__ == "__main__":
    main()
