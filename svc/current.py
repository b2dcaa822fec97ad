"""The one client that the public functions and the integrations act on."""

from svc.client import Client


class Current:
    """Set by `init`, and None again after `close`."""

    client: Client | None = None


def current() -> Client | None:
    """The client that `init` made, or None."""
    return Current.client
