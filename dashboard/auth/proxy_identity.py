"""The person whom a proxy signed in, by the headers of a request; doubtful headers are refused."""

import re
import unicodedata
from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct
from multidict import MultiMapping

from query.person import WORDS
from schemas.errors import BadSetting
from schemas.issues import SYSTEM
from schemas.settings import DashboardSettings

PROOF_HEADER: Final = "Svc-Proxy-Secret"
USER: Final = "admin"
"""The name of whoever signs in by the password and gives no other."""
KEY_NAME: Final = "key "
"""Before the name of a key in histories."""
RESERVED: Final = frozenset({SYSTEM, "rebuild", USER, *WORDS})
MAX_NAME: Final = 200
MIN_SECRET: Final = 16
Reason = Literal["address", "secret", "repeated", "name"]
SENTENCES: Final[dict[Reason, str]] = {
    "address": "headers that name a person count only from a trusted proxy",
    "secret": f"the header {PROOF_HEADER} is missing or wrong",
    "repeated": "a header that names a person is repeated",
    "name": f"the person's name is empty, reserved, unprintable or longer than {MAX_NAME} characters",
}


class HeadersRefused(Exception):
    """The request claims a person in a way that doesn't count."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(SENTENCES[reason])
        self.reason = reason


class ProxyUser(Struct, frozen=True):
    """A person and their groups, as the proxy names them."""

    name: str
    groups: tuple[str, ...]


class ProxyHeaders(Struct, frozen=True):
    """The names of the headers; without one for the user, there is no sign-in by a proxy."""

    user: str = ""
    groups: str = ""

    def read(
        self, headers: MultiMapping[str], *, is_trusted: bool, is_secret: Callable[[str], bool]
    ) -> ProxyUser | None:
        """The person; None if no header names one. Raises HeadersRefused.

        `is_trusted`: the request comes from the address of a trusted proxy.
        """
        if not self.user:
            return None
        given = {name: headers.getall(name, []) for name in (self.user, self.groups, PROOF_HEADER) if name}
        if not any(given.values()):
            return None
        if not is_trusted:
            raise HeadersRefused("address")
        if any(len(values) > 1 for values in given.values()):
            raise HeadersRefused("repeated")
        if not is_secret("".join(given[PROOF_HEADER])):
            raise HeadersRefused("secret")
        if not given[self.user]:
            return None
        (name,) = given[self.user]
        if not is_name(name):
            raise HeadersRefused("name")
        groups = (group.strip() for group in ",".join(given.get(self.groups, [])).split(","))
        return ProxyUser(name, tuple(filter(None, groups)))


def is_name(name: str) -> bool:
    """Whether a proxy may name a person so."""
    # Compatible characters, such as full-width ones, look like the reserved names.
    plain = unicodedata.normalize("NFKC", name).casefold().strip()
    is_plain = name == name.strip() and name.isprintable() and len(name) <= MAX_NAME
    return bool(plain) and is_plain and plain not in RESERVED and not plain.startswith(KEY_NAME)


def parse_proxy(settings: DashboardSettings) -> ProxyHeaders:
    """The headers of the settings. Raises BadSetting."""
    user, groups = settings.dashboard_proxy_user_header, settings.dashboard_proxy_groups_header
    given = [name for name in (user, groups) if name]
    if not user and (groups or not settings.dashboard_password_sign_in):
        raise BadSetting(
            "SVC_DASHBOARD_PROXY_USER_HEADER is required: without it no proxy can sign people in"
        )
    if any(not re.fullmatch(r"[A-Za-z0-9-]+", name) for name in given):
        raise BadSetting("SVC_DASHBOARD_PROXY_USER_HEADER and …_GROUPS_HEADER take letters, digits and -")
    if len({name.lower() for name in (*given, PROOF_HEADER)}) <= len(given):
        raise BadSetting("SVC_DASHBOARD_PROXY_USER_HEADER and …_GROUPS_HEADER must be two headers")
    if user and len(settings.dashboard_proxy_secret) < MIN_SECRET:
        raise BadSetting(f"SVC_DASHBOARD_PROXY_SECRET is required: at least {MIN_SECRET} characters")
    if user and not settings.dashboard_trusted_proxies.strip():
        raise BadSetting("SVC_DASHBOARD_TRUSTED_PROXIES is required: the addresses whose headers count")
    return ProxyHeaders(user, groups)
