"""Errors that keep a local server or process from running; each message names the problem and its fix."""

from schemas.errors import CannotRun


class MissingProgram(CannotRun):
    """A required program or package isn't installed."""


class DownloadError(CannotRun):
    """Kafka's jars could not be fetched; the message contains Maven's error."""


class StartError(CannotRun):
    """A server or one of our processes did not start; the message contains the end of its log."""
