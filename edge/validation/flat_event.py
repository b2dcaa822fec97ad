"""The event of `schemas.event` when it has nothing but declared fields and flat free-form values: its type says how deep it is.

Most events are like this. Whatever else an event holds, a decoder may pass over it at any depth, and its text has to be looked at.
"""

from typing import Annotated, Final

from msgspec import Meta

from schemas import event
from schemas.limits import Limit

_ID_LENGTH: Final = 36
_Flat = str | int | float | bool | None


class _Framework(event.Framework, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    pass


class _App(event.App, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    framework: _Framework | None = None


class _Device(event.Device, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    pass


class _User(event.User, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    pass


class _Frame(event.Frame, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    pass


class _Error(event.Error, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    stack: Annotated[list[_Frame], Meta(max_length=Limit.FRAMES.maximum)]  # type: ignore[assignment]
    cause: "_Error | None" = None


class _NavData(event.NavData, frozen=True, rename={"from_": "from"}, gc=False, forbid_unknown_fields=True):
    pass


class _NetData(event.NetData, frozen=True, gc=False, forbid_unknown_fields=True):
    pass


class _LogData(event.LogData, frozen=True, gc=False, forbid_unknown_fields=True):
    pass


class _UserData(event.UserData, frozen=True, gc=False, forbid_unknown_fields=True):
    pass


class _Nav(
    event.NavBreadcrumb, frozen=True, tag_field="type", tag="nav", gc=False, forbid_unknown_fields=True
):
    data: _NavData


class _Net(
    event.NetBreadcrumb, frozen=True, tag_field="type", tag="net", gc=False, forbid_unknown_fields=True
):
    data: _NetData


class _Log(
    event.LogBreadcrumb, frozen=True, tag_field="type", tag="log", gc=False, forbid_unknown_fields=True
):
    data: _LogData


class _Action(
    event.UserBreadcrumb, frozen=True, tag_field="type", tag="user", gc=False, forbid_unknown_fields=True
):
    data: _UserData


class _Custom(
    event.CustomBreadcrumb, frozen=True, tag_field="type", tag="custom", gc=False, forbid_unknown_fields=True
):
    data: dict[str, _Flat]  # type: ignore[assignment]


class _Track(
    event.TrackBreadcrumb, frozen=True, tag_field="type", tag="track", gc=False, forbid_unknown_fields=True
):
    data: dict[str, _Flat]  # type: ignore[assignment]


_Breadcrumb = _Nav | _Net | _Log | _Action | _Custom | _Track
_Breadcrumbs = Annotated[list[_Breadcrumb], Meta(max_length=Limit.BREADCRUMBS.maximum)]


class UncheckedEvent(event.Event, frozen=True, kw_only=True, gc=False):
    """The event without the pattern of its id, which costs a tenth of decoding it."""

    id: Annotated[str, Meta(min_length=_ID_LENGTH, max_length=_ID_LENGTH)]


class BoundedEvent(UncheckedEvent, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """The same, no deeper than its causes."""

    device: _Device
    app: _App
    error: _Error
    user: _User | None = None
    breadcrumbs: _Breadcrumbs | None = None  # type: ignore[assignment]
    fingerprint: list[_Flat] | None = None  # type: ignore[assignment]
