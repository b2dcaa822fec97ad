"""Issues that are surely one although their fingerprints differ: engines lose names and callers in between. Pure.

Two errors are compared only if their chain of types, their fault and the files of the topmost own frames are equal. Then frames and their
order decide: of each error of the chain, the own frames of one must be found in the other's in their order, where a frame without a name
stands for any of its file. Only named frames that both have are evidence, weighted by their rarity in the project.
"""

import math
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator, KeysView
from typing import Final, NamedTuple

from grouping.fingerprint import CURRENT_VERSION, VERSIONS, GroupingEvent
from grouping.fingerprint.frames import Family, Role, is_minified
from grouping.fingerprint.mechanism import chain_of

SURE: Final = 0.5
"""The likeness from which two issues are one; measured by `make bench-grouping`."""
MAX_ISSUES: Final = 2000
"""Issues of a project that are compared, the newest."""
_FRAMES: Final = 30


class NamedFrame(NamedTuple):
    """An own frame: its cleaned name, empty for anonymous code, and its file or module."""

    name: str
    module: str

    def fits(self, other: "NamedFrame") -> bool:
        """Whether both may be one function."""
        is_one_file = bool(self.module) and self.module == other.module
        return self == other or (is_one_file and not (self.name and other.name))


class Trace(NamedTuple):
    """What is compared of an error: `kind` must be equal; `stacks` are the own frames of each error of its chain, outermost first."""

    kind: tuple[str, ...]
    stacks: tuple[tuple[NamedFrame, ...], ...]

    @property
    def frames(self) -> Iterator[NamedFrame]:
        """All frames."""
        for stack in self.stacks:
            yield from stack


class Match(NamedTuple):
    """An issue and its likeness, from 0 to 1."""

    issue: int
    likeness: float


def trace_of(event: GroupingEvent, version: str = CURRENT_VERSION) -> Trace | None:
    """The trace of an event; None where nothing of the app's is in the root's stack, or a build's fault says little."""
    reading = VERSIONS[version].reading
    chain = chain_of(event.error)
    root = chain[-1]
    kind, message = root.type or "", root.message or ""
    known = reading.fault(kind, message) if event.platform == "javascript" else None
    stacks, minified = [], False
    for error in chain:
        frames = []
        for frame in (error.stack or ())[:_FRAMES]:
            site = reading.frame(event.platform, frame)
            if site.role is Role.APP:
                minified = minified or (site.family is Family.JAVASCRIPT and is_minified(frame))
                frames.append(NamedFrame(site.name, site.module))
        stacks.append(tuple(frames))
    if not stacks[-1] or (minified and known is not None and reading.is_weak_in_build(known)):
        return None
    template = reading.headline if event.platform == "javascript" else reading.message
    fault = f"fault {known}" if known is not None else f"message {template(message)}"
    return Trace((event.platform or "", *[error.type or "" for error in chain], fault), tuple(stacks))


class Neighbours:
    """The issues of a project by what must be equal; the oldest are forgotten. `wholes` has the issue that each is merged into."""

    def __init__(self) -> None:
        self.wholes: dict[int, int] = {}
        self._traces: OrderedDict[int, Trace | None] = OrderedDict()
        self._by_kind: defaultdict[tuple[str, ...], dict[int, Trace]] = defaultdict(dict)
        self._having: Counter[NamedFrame] = Counter()

    @property
    def issues(self) -> KeysView[int]:
        """The known issues."""
        return self._traces.keys()

    def __contains__(self, issue: int) -> bool:
        return issue in self._traces

    def add(self, issue: int, trace: Trace | None) -> None:
        """Keep an issue's trace, or that it has none."""
        if issue in self._traces:
            return
        self._traces[issue] = trace
        if trace is not None:
            self._by_kind[trace.kind][issue] = trace
            self._having.update(set(trace.frames))
        if len(self._traces) > MAX_ISSUES:
            self._forget(*self._traces.popitem(last=False))

    def nearest(self, trace: Trace) -> Match | None:
        """The issue that a trace fits best; None if it fits none, or two that aren't merged: a frame without a name may fit many.

        It must fit all that is merged into the issue, or unlike ones would be merged through what fits both.
        """
        wholes: defaultdict[int, list[float]] = defaultdict(list)
        for issue, its_trace in sorted(self._by_kind.get(trace.kind, {}).items()):
            wholes[self.wholes.get(issue, issue)].append(self._likeness(trace, its_trace))
        matches = [Match(whole, max(found)) for whole, found in wholes.items() if min(found) > 0]
        return matches[0] if len(matches) == 1 else None

    def _forget(self, issue: int, trace: Trace | None) -> None:
        self.wholes.pop(issue, None)
        if trace is None:
            return
        del self._by_kind[trace.kind][issue]
        if not self._by_kind[trace.kind]:
            del self._by_kind[trace.kind]
        self._having.subtract(set(trace.frames))
        for frame in set(trace.frames):
            if not self._having[frame]:
                del self._having[frame]

    def _likeness(self, one: Trace, other: Trace) -> float:
        found = whole = 0.0
        for stack, its_stack in zip(one.stacks, other.stacks, strict=True):
            common = aligned(stack, its_stack)
            if common is None:
                return 0
            found += 2 * sum(map(self._weight, common))
            whole += sum(map(self._weight, stack)) + sum(map(self._weight, its_stack))
        return found / whole if whole else 0

    def _weight(self, frame: NamedFrame) -> float:
        return math.log(1 + (1 + len(self._traces)) / (1 + self._having[frame]))


def aligned(one: tuple[NamedFrame, ...], other: tuple[NamedFrame, ...]) -> list[NamedFrame] | None:
    """The named frames that two stacks share, where the shorter is found in the longer in order and their tops fit; else None."""
    short, long = sorted((one, other), key=len)
    if not short:
        return None if long else []
    if not short[0].fits(long[0]):
        return None
    common, left = [], iter(long)
    for frame in short:
        found = next((candidate for candidate in left if frame.fits(candidate)), None)
        if found is None:
            return None
        if found == frame and frame.name:
            common.append(frame)
    return common
