"""What can keep a local server or process from running; each message says what is wrong and how to mend it."""


class LocalError(RuntimeError):
    """Something on this machine keeps a server or process of ours from running."""


class MissingProgram(LocalError):
    """A program or package that a local server needs isn't installed."""


class DownloadError(LocalError):
    """Kafka's jars could not be fetched; the message holds Maven's own words."""


class StartError(LocalError):
    """A server or one of our processes did not start; the message holds the end of its log."""
