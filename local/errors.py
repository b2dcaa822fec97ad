"""What can keep a local server or process from running; each message says what is wrong and how to mend it."""


class MissingProgram(RuntimeError):
    """A program or package that a local server needs isn't installed."""


class DownloadError(RuntimeError):
    """Kafka's jars could not be fetched; the message holds Maven's own words."""


class StartError(RuntimeError):
    """A server or one of our processes did not start; the message holds the end of its log."""
