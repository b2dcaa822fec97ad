"""The grouping mechanism: error type, engine-neutral error and the app's first cleaned frames; else the message."""

from grouping.fingerprint import faults, javascript, messages, native
from grouping.fingerprint.event_view import GroupingError, GroupingEvent
from grouping.fingerprint.frames import Family, FrameRole, Site
from grouping.fingerprint.made_names import class_name
from grouping.fingerprint.raised import by_runtime, is_assertion
from grouping.fingerprint.stacks import ErrorLocation, ErrorSite, error_sites_of

# The protocol's limit of the cause chain, plus the error itself.
_CHAIN = 11
_TYPE_CHARACTERS = 200


def locate(event: GroupingEvent) -> ErrorLocation:
    """The error's location by the stacks alone; depends on platform, types and stacks, not on messages."""
    return error_sites_of(event.platform, chain_of(event.error))


def decide(event: GroupingEvent, location: ErrorLocation) -> tuple[str, tuple[str, ...]]:
    """The deciding step, "stack" or "message", and the parts to hash; `location` is the result of `locate`."""
    chain = chain_of(event.error)
    index, error_sites = location
    if index is None:
        return "message", _message_parts(event.platform, chain, error_sites)
    parts = _stack_parts(chain[index], error_sites[index])
    if index:
        parts = [*_outer_parts(chain[0], error_sites[0]), *[f"cause {part}" for part in parts]]
    return "stack", tuple(parts)


def culprit(event: GroupingEvent, location: ErrorLocation | None = None) -> str:
    """The deciding frame for people: `function in file`, or empty."""
    site = deciding_site(location or locate(event))
    return "" if site is None else site.text


def deciding_site(location: ErrorLocation) -> Site | None:
    """The deciding frame, cleaned; None if there is none."""
    index, error_sites = location
    return None if index is None else error_sites[index].sites[0]


def _message_parts(
    platform: str | None, chain: list[GroupingError], error_sites: list[ErrorSite]
) -> tuple[str, ...]:
    top, root = chain[0], chain[-1]
    kind, message = _type(root), _message(root)
    known = None
    if platform == "javascript":
        kind, message = faults.thrown(kind, message)
        known = faults.fault(kind, message)
        if known is None and kind == "TypeError" and message.isalpha() and not root.stack:
            # Engines write sentences: one word is how Safari says "cancelled", in the user's language.
            known = "aborted"
    if known is not None and faults.says_it_all(known):
        kind = faults.fault_type(known, kind)
    parts = [f"type {kind if root is top else _type(top)}"]
    if root is not top:
        parts.append(f"cause type {kind}")
    # A template would drop the only word in a quoting engine's message.
    named = known is not None and (faults.says_it_all(known) or not faults.is_weak(known))
    parts.append(f"fault {known}" if named else f"message {messages.template(message)}")
    parts.extend([f"frame {helper.text}" for error_site in error_sites for helper in error_site.helpers])
    return tuple(parts)


def _stack_parts(error: GroupingError, error_site: ErrorSite) -> list[str]:
    site = error_site.sites[0]
    if site.family is Family.JAVASCRIPT:
        return _javascript_parts(error, error_site)
    kind = _type(error)
    if site.family is Family.NATIVE:
        kind = native.one_crash(kind)
    parts = [f"type {kind}", *_frame_parts(error_site.sites)]
    message = _message(error)
    if message and not why_uncounted(kind, error_site):
        parts.append(f"message {messages.headline(message)}")
    return parts


def why_uncounted(kind: str, error_site: ErrorSite) -> str:
    """Why the message doesn't tell problems apart; empty if it does: no frame of the app does, or the app worded it."""
    if error_site.sites[0].family is Family.NATIVE and native.is_crash(kind):
        return "that of a native crash has its address"
    if error_site.role is not FrameRole.APP or error_site.sites[0].vague:
        return ""
    if is_assertion(kind):
        return "it has the values of an assertion"
    return "the runtime raised this error and worded it" if error_site.called or by_runtime(kind) else ""


def _javascript_parts(error: GroupingError, error_site: ErrorSite) -> list[str]:
    kind, message = faults.thrown(_type(error), _message(error))
    known = faults.fault(kind, message)
    if known is None:
        first_part = f"message {messages.headline(message)}"
    else:
        kind = faults.fault_type(known, kind)
        first_part = f"fault {known}"
    if error_site.minified:
        parts = [f"type {kind}", first_part, f"file {error_site.sites[0].file}"]
        if near := _near_name(known, error_site):
            parts.append(f"near {near}")
        return parts
    if known is not None and known.startswith(("call.", "new.")):
        # Hermes omits the called name; a frame with a name suffices.
        first_part = f"fault {known.partition('.')[0]}"
    return [f"type {kind}", first_part, *_frame_parts(error_site.sites)]


def near_name(error: GroupingError, error_site: ErrorSite) -> str:
    """The name that is a part of an error in a build; empty if none is."""
    return _near_name(faults.fault(*faults.thrown(_type(error), _message(error))), error_site)


def _near_name(known: str | None, error_site: ErrorSite) -> str:
    # The nearest unminified name distinguishes errors without a name in a build.
    near = error_site.sites[-1].name
    counts = known is not None and faults.is_weak_in_build(known) and javascript.survives_minifying(near)
    return near if counts else ""


def chain_of(error: GroupingError) -> list[GroupingError]:
    """The error and its causes, outermost first."""
    chain = [error]
    while error.cause is not None and len(chain) < _CHAIN:
        error = error.cause
        chain.append(error)
    return chain


def _outer_parts(error: GroupingError, error_site: ErrorSite) -> list[str]:
    """The type of the error thrown last, and its site if reliable."""
    parts = [f"type {_type(error)}"]
    if error_site.role is FrameRole.APP and not error_site.minified and not error_site.sites[0].vague:
        parts.append(f"frame {error_site.sites[0].text}")
    return parts


def _frame_parts(sites: tuple[Site, ...]) -> list[str]:
    return [f"frame {site.text}" for site in sites]


def _type(error: GroupingError) -> str:
    return class_name((error.type or "")[:_TYPE_CHARACTERS])


def _message(error: GroupingError) -> str:
    return (error.message or "")[: messages.CHARACTERS]
