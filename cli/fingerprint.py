"""`svc fingerprint`: shows how events of JSONL files would be grouped; needs no server."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import msgspec
from rich.markup import escape
from rich.table import Table

from cli.console import console
from cli.failures import BAD_SETTING_STATUS, fail
from cli.fingerprint_lines import BadLine, ExplainedEvent, explain, numbered_lines
from grouping.rule_checks import violations
from grouping.rules import CompiledRules, compile_rules
from schemas.projects import GROUPING_VERSION, GroupingRule

_EVENTS_PER_GROUP = 3
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option("--rules", "rules_file", type=_FILE, help="A JSON list of grouping rules to try.")
@click.option("--explain", "for_people", is_flag=True, help="Print groups with their reasons, for people.")
def fingerprint(files: Sequence[Path], rules_file: Path | None, for_people: bool) -> None:
    """Print one JSON line an event: {"id", "fingerprint", "version", "rule", "parts"}."""
    problems: list[str] = []
    rules = None if rules_file is None else _rules(rules_file, problems)
    events = _explained(files, rules, problems)
    if for_people:
        print_fingerprints(list(events))
    else:
        for event in events:
            click.echo(json_line(event))
    for problem in problems:
        click.echo(problem, err=True)
    sys.exit(1 if problems else 0)


def json_line(event: ExplainedEvent) -> str:
    """One event's grouping; `discard` is present only if a rule drops the event."""
    line = {
        "id": event.id,
        "fingerprint": event.fingerprint,
        "version": GROUPING_VERSION,
        "rule": event.rule,
        "parts": event.parts,
    }
    return msgspec.json.encode({**line, "discard": True} if event.discard else line).decode()


def print_fingerprints(events: Sequence[ExplainedEvent]) -> None:
    """Print the groups, the largest first, with their parts and first events."""
    groups: dict[str, list[ExplainedEvent]] = {}
    for event in events:
        groups.setdefault(event.fingerprint, []).append(event)
    out = console()
    for members in sorted(groups.values(), key=len, reverse=True):
        first = members[0]
        dropped = ", dropped" if first.discard else ""
        out.print(
            f"[bold]{first.fingerprint}[/bold]  {len(members)} event{'s' * (len(members) != 1)}, "
            f"by {escape(first.rule)} ({GROUPING_VERSION}){dropped}"
        )
        table = Table.grid(padding=(0, 2))
        for part in first.parts:
            name, _, value = part.removeprefix("cause ").partition(" ")
            table.add_row(
                "  ", f"[cyan]{'cause ' * part.startswith('cause ')}{escape(name)}[/cyan]", escape(value)
            )
        out.print(table)
        for sentence in first.why:
            out.print(f"    {escape(sentence)}")
        for event in members[:_EVENTS_PER_GROUP]:
            out.print(
                f"    [dim]{escape(event.id)}[/dim]  {escape(event.title)}  [dim]{escape(event.culprit)}[/dim]"
            )
        if len(members) > _EVENTS_PER_GROUP:
            out.print(f"    [dim]and {len(members) - _EVENTS_PER_GROUP} more[/dim]")
    out.print(f"{len(events)} events, {len(groups)} groups")


def _explained(
    files: Sequence[Path], rules: CompiledRules | None, problems: list[str]
) -> Iterator[ExplainedEvent]:
    for file in files:
        try:
            for number, line in numbered_lines(file):
                try:
                    yield explain(line, rules)
                except BadLine as error:
                    problems.append(f"{file}:{number}: {error}")
        except BadLine as error:
            problems.append(f"{file}: {error}")


def _rules(file: Path, problems: list[str]) -> CompiledRules:
    """The compiled rules; violations that would prevent saving them are added to `problems`."""
    try:
        rules = msgspec.json.decode(file.read_bytes(), type=list[GroupingRule])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        fail(f"{file}: {error}", BAD_SETTING_STATUS)
    problems += [f"{file}: {violation.field}: {violation.message}" for violation in violations(rules)]
    return compile_rules(rules)
