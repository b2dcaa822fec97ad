"""`svc fingerprint`: how events of JSONL files would be grouped, without a server."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import msgspec
from rich.markup import escape
from rich.table import Table

from cli.console import BAD_SETTING_STATUS, console
from cli.fingerprint_lines import BadLine, ExplainedEvent, explain, numbered_lines
from grouping.rule_checks import violations
from grouping.rules import CompiledRules, compile_rules
from schemas.projects import GroupingRule

# People want to see a few events of each group, not all.
_SHOWN = 3
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option("--rules", "rules_file", type=_FILE, help="A JSON list of grouping rules to try.")
@click.option("--explain", "for_people", is_flag=True, help="Print groups with their reasons, for people.")
def fingerprint(files: Sequence[Path], rules_file: Path | None, for_people: bool) -> None:
    """Print one JSON line an event: {"id", "fingerprint", "version", "rule", "parts"}."""
    complaints: list[str] = []
    rules = None if rules_file is None else _rules(rules_file, complaints)
    found = _explained(files, rules, complaints)
    if for_people:
        show(list(found))
    else:
        for one in found:
            click.echo(json_line(one))
    for complaint in complaints:
        click.echo(complaint, err=True)
    sys.exit(1 if complaints else 0)


def json_line(one: ExplainedEvent) -> str:
    """One event's grouping; `discard` stands only where a rule drops the event."""
    line = {
        "id": one.id,
        "fingerprint": one.fingerprint,
        "version": one.version,
        "rule": one.rule,
        "parts": one.parts,
    }
    return msgspec.json.encode({**line, "discard": True} if one.discard else line).decode()


def show(found: Sequence[ExplainedEvent]) -> None:
    """Groups, the largest first, each with its parts and its first events."""
    groups: dict[str, list[ExplainedEvent]] = {}
    for one in found:
        groups.setdefault(one.fingerprint, []).append(one)
    out = console()
    for members in sorted(groups.values(), key=len, reverse=True):
        first = members[0]
        dropped = ", dropped" if first.discard else ""
        out.print(
            f"[bold]{first.fingerprint}[/bold]  {len(members)} event{'s' * (len(members) != 1)}, "
            f"by {escape(first.rule)} ({first.version}){dropped}"
        )
        table = Table.grid(padding=(0, 2))
        for part in first.parts:
            name, _, value = part.removeprefix("cause ").partition(" ")
            table.add_row(
                "  ", f"[cyan]{'cause ' * part.startswith('cause ')}{escape(name)}[/cyan]", escape(value)
            )
        out.print(table)
        for one in members[:_SHOWN]:
            out.print(
                f"    [dim]{escape(one.id)}[/dim]  {escape(one.title)}  [dim]{escape(one.culprit)}[/dim]"
            )
        if len(members) > _SHOWN:
            out.print(f"    [dim]and {len(members) - _SHOWN} more[/dim]")
    out.print(f"{len(found)} events, {len(groups)} groups")


def _explained(
    files: Sequence[Path], rules: CompiledRules | None, complaints: list[str]
) -> Iterator[ExplainedEvent]:
    for file in files:
        try:
            for number, line in numbered_lines(file):
                try:
                    yield explain(line, rules)
                except BadLine as error:
                    complaints.append(f"{file}:{number}: {error}")
        except BadLine as error:
            complaints.append(f"{file}: {error}")


def _rules(file: Path, complaints: list[str]) -> CompiledRules:
    """The rules as processing would ask them; what keeps them from being saved is a complaint."""
    try:
        rules = msgspec.json.decode(file.read_bytes(), type=list[GroupingRule])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        click.echo(f"svc: {file}: {error}", err=True)
        sys.exit(BAD_SETTING_STATUS)
    complaints += [f"{file}: {one.field}: {one.message}" for one in violations(rules)]
    return compile_rules(rules)
