"""Command groups that suggest the nearest subcommand for an unknown one."""

import difflib

import click


class NearestGroup(click.Group):
    """A group that answers `isues` with "Did you mean issues?"."""

    group_class = type

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The subcommand that the first argument names. Raises UsageError with the nearest name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            for name in difflib.get_close_matches(args[0], self.list_commands(ctx), n=1):
                error.message += f" Did you mean '{name}'?"
            raise
