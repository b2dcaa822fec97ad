"""What can keep a local server or process from running; each message says what is wrong and how to mend it."""

from schemas.errors import CannotRun


class MissingProgram(CannotRun):
    """A program or package that a local server needs isn't installed."""


class DownloadError(CannotRun):
    """Kafka's jars could not be fetched; the message holds Maven's own words."""


class StartError(CannotRun):
    """A server or one of our processes did not start; the message holds the end of its log."""
