"""The scorer, against counts by hand, and the shipped scores."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from bench import grouping
from bench.grouping import Evaluation
from bench.grouping_pairs import events_of, read_pairs, score_pairs, wrong_pairs
from bench.grouping_scores import Label, Scores, score

BASELINE = Path(grouping.__file__).parent / "grouping_baseline.json"


def labels(groups: str, project: str = "p") -> list[Label]:
    """One label a letter: its group."""
    return [
        Label(f"{project}{index}", project, group, [f"class {group}"]) for index, group in enumerate(groups)
    ]


def found(issues: str, project: str = "p") -> dict[str, str]:
    return {f"{project}{index}": issue for index, issue in enumerate(issues)}


def test_a_perfect_grouping_scores_one() -> None:
    scores = score(labels("aabbc"), found("xxyyz"))
    assert (scores.pair_f1, scores.bcubed_f1, scores.issues) == (1.0, 1.0, 3)


def test_wrong_splits_reduce_only_recall() -> None:
    scores = score(labels("aaaa"), found("xxyy"))
    assert scores.pair_precision == 1.0
    assert scores.pair_recall == pytest.approx(2 / 6)
    assert (scores.bcubed_precision, scores.bcubed_recall) == (1.0, 0.5)


def test_wrong_merges_reduce_only_precision() -> None:
    scores = score(labels("aabb"), found("xxxx"))
    assert scores.pair_precision == pytest.approx(2 / 6)
    assert scores.pair_recall == 1.0
    assert scores.classes["class a"].false_merges == 4


def test_projects_never_meet() -> None:
    scores = score([*labels("a", "p"), *labels("b", "q")], {"p0": "x", "q0": "x"})
    assert scores.issues == 2
    assert scores.pair_precision == 1.0


def test_an_event_without_a_fingerprint_is_its_own_issue() -> None:
    assert score(labels("aa"), {"p0": "x"}).pair_recall == 0.0


def test_an_event_without_a_group_does_not_count() -> None:
    assert score([Label("p0", "p"), *labels("a", "q")], {}).events == 1


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("wxyz")), min_size=1, max_size=12))
def test_pairs_agree_with_counting_them_one_by_one(events: list[tuple[str, str]]) -> None:
    groups, issues = "".join(group for group, _ in events), "".join(issue for _, issue in events)
    scores = score(labels(groups), found(issues))
    pairs = [(i, j) for i in range(len(events)) for j in range(i)]
    related = [pair for pair in pairs if groups[pair[0]] == groups[pair[1]]]
    met = [pair for pair in pairs if issues[pair[0]] == issues[pair[1]]]
    both = set(related) & set(met)
    assert scores.pair_recall == pytest.approx(len(both) / len(related) if related else 1.0)
    assert scores.pair_precision == pytest.approx(len(both) / len(met) if met else 1.0)


def test_the_shipped_pairs_name_their_sources_and_differ() -> None:
    pairs = read_pairs()
    assert len(pairs) >= 350
    assert all(pair.source.startswith("https://") and pair.about for pair in pairs)
    assert len({str((pair.platform, pair.one, pair.other)) for pair in pairs}) == len(pairs)
    assert {pair.platform for pair in pairs} == {"javascript", "android", "ios", "python"}


def test_pairs_are_right_if_they_are_joined_or_kept_apart_as_they_should_be() -> None:
    pairs = read_pairs()
    all_joined = score_pairs(pairs, lambda _: 0).values()
    all_apart = score_pairs(pairs, id).values()
    assert all(each.joined == each.to_join and each.apart == 0 for each in all_joined)
    assert all(each.joined == 0 and each.apart == each.to_part for each in all_apart)
    assert wrong_pairs(pairs, lambda _: 0) == [pair for pair in pairs if not pair.same]


def test_frames_of_pairs_have_function_file_position_and_owner() -> None:
    pair, *_ = [pair for pair in read_pairs() if pair.about.startswith("a function that awaits")]
    (frame,) = events_of(pair)[0].error.stack or []
    assert (frame.function, frame.file, frame.line, frame.column, frame.in_app) == (
        *("async loadOrders", "src/orders/load.ts", 14, 22, True),
    )


def test_the_shipped_set_scores_no_less_than_its_baseline() -> None:
    result = CliRunner().invoke(grouping.command, ["--check", str(BASELINE)])
    assert result.exit_code == 0, result.output
    assert "cost per event" in result.output


def test_a_fall_below_the_baseline_fails() -> None:
    few = [
        *("--data", str(grouping.SAMPLES / "written.events.jsonl")),
        *("--labels", str(grouping.SAMPLES / "written.labels.jsonl")),
    ]
    result = CliRunner().invoke(grouping.command, [*few, "--check", str(BASELINE)])
    assert result.exit_code == 1
    assert "recall of single-bundle" in result.output


def test_an_f1_below_the_least_one_fails() -> None:
    assert CliRunner().invoke(grouping.command, ["--least-f1", "0.9"]).exit_code == 0
    result = CliRunner().invoke(grouping.command, ["--least-f1", "0.999"])
    assert result.exit_code == 1
    assert "at least 0.999" in result.output


@pytest.mark.parametrize(
    ("better", "message"),
    [
        ({"pairF1": 1.1}, "pair_f1"),
        ({"classes": {"gone": {"pairs": 1, "recall": 1.0, "falseMerges": 0}}}, "recall of gone"),
        (
            {"pairs": {"wording": {"joined": 1000, "to_join": 1000, "apart": 0, "to_part": 0}}},
            "pairs of wording",
        ),
        ({"slices": {"web": {}}}, "pair F1 of web"),
        ({"slices": {"ios": {"pairPrecision": 1.1}}}, "pair precision of ios"),
    ],
)
def test_a_fall_is_named(better: dict[str, Any], message: str) -> None:
    kept = msgspec.json.decode(BASELINE.read_bytes())
    for name, part in better.get("slices", {}).items():
        better["slices"][name] = kept["slices"]["ios"] | part
    baseline = msgspec.convert(kept | better, Evaluation)
    falls = grouping.compare(msgspec.json.decode(BASELINE.read_bytes(), type=Evaluation), baseline)
    assert message in "".join(falls)


def test_the_shipped_scores_reach_the_targets() -> None:
    scores = msgspec.json.decode(BASELINE.read_bytes(), type=Scores)
    assert scores.pair_f1 >= 0.94
    assert scores.pair_precision >= 0.96
    assert scores.bcubed_f1 >= 0.965
    for name, least in {"minified": 0.85, "cross-engine": 0.90, "ids-in-message": 0.88}.items():
        assert (scores.classes[name].recall or 0.0) >= least
