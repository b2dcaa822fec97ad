"""The console script `svc`: a group that imports each subcommand on first use."""

import gc
import importlib
import importlib.util
import logging
import os
from pathlib import Path

import click

from cli.command_groups import NearestGroup
from cli.workspace import Workspace
from local.discovery import environment, overlaid
from local.proxies import bypass_proxies

SECTIONS = {
    "On this machine": {
        "up": "cli.up:up",
        "demo": "cli.demo.demo_command:demo",
        "doctor": "cli.doctor.doctor_command:doctor",
        "send": "cli.send.send_command:send",
        "fingerprint": "cli.fingerprint:fingerprint",
    },
    "Projects, issues and people": {
        "projects": "cli.projects:projects",
        "keys": "cli.projects:keys",
        "issues": "cli.issues:issues",
        "sourcemaps": "cli.sourcemaps:sourcemaps",
        "trace": "cli.trace.trace_command:trace",
        "analysts": "cli.analysts:analysts",
    },
    "Processes of a deployment": {
        "edge": "cli.edge:command",
        "processors": "cli.processors:command",
        "writer": "cli.writer:command",
        "dashboard": "cli.dashboard:command",
        "notify": "cli.notify:command",
    },
    "Set up and operate": {
        "guest": "cli.guest.guest_command:guest",
        "migrate": "cli.migrate:migrate",
        "topics": "cli.topics:topics",
        "reconcile": "cli.reconcile:reconcile",
        "dead-letters": "cli.dead_letters:dead_letters",
        "spool": "cli.spool:spool",
        "rebuild": "cli.rebuild:rebuild",
        "erase": "cli.erase:erase",
    },
}
"""Subcommands and where they are, by the sections of the help."""
COMMANDS = {name: target for section in SECTIONS.values() for name, target in section.items()}


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def hoisted(arguments: list[str]) -> list[str]:
    """The arguments with `--data-dir DIR` moved to the front, so that it may follow any subcommand (not a `--`)."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    first, others = list[str](), list[str]()
    words = iter(arguments[:end])
    for word in words:
        if word == "--data-dir":
            first += [word, *([value] if (value := next(words, None)) is not None else [])]
        elif word.startswith("--data-dir="):
            first.append(word)
        else:
            others.append(word)
    return [*first, *others, *arguments[end:]]


class LazyGroup(NearestGroup):
    """Subcommands by name and module: `svc send` doesn't wait for Faust's imports."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; the group's options may also follow the subcommand."""
        return super().parse_args(ctx, hoisted(args))

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The installed subcommands, in the order of the table."""
        return [name for name, target in COMMANDS.items() if _is_installed(target.partition(":")[0])]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the subcommands by their sections, each with its whole first sentence."""
        for title, names in SECTIONS.items():
            found = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (name, command.get_short_help_str(limit=300))
                        for name, command in found
                        if command is not None
                    ]
                )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a subcommand; None for an unknown or uninstalled one."""
        module, _, attribute = COMMANDS.get(cmd_name, "").partition(":")
        if not module or not _is_installed(module):
            return None
        # Nothing of it is garbage: collections would take a tenth of the time of Faust's imports.
        gc.disable()
        try:
            command = getattr(importlib.import_module(module), attribute)
        finally:
            gc.enable()
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="SVC_DATA_DIR",
    default=".svc",
    show_default=True,
    help="Folder of this machine's data; also SVC_DATA_DIR, and behind any subcommand.",
)
@click.version_option(package_name="svc-service")
@click.pass_context
def svc(ctx: click.Context, data_dir: Path) -> None:
    """Error ingestion on Kafka, Faust and ClickHouse."""
    folder = data_dir.resolve()
    ctx.obj = Workspace(folder, overlaid(environment(folder, os.environ), {"SVC_DATA_DIR": str(folder)}))


def main() -> None:
    """Run the command line.

    Commands report errors in one line, so the logs of libraries and our own clients are silenced.
    Long-running processes configure logging themselves.
    """
    logging.getLogger().setLevel(logging.CRITICAL)
    bypass_proxies(os.environ)
    # pyarrow's own allocator keeps what is freed: 68 MB of a writer that has nothing to do.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    svc.main(prog_name="svc")


if __name__ == "__main__":
    main()
