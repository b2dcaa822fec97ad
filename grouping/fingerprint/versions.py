"""The registry of grouping versions: fingerprints are stored with their version's name, and versions never change."""

from functools import lru_cache
from typing import Final

from grouping.fingerprint import browser_errors, native, telling_values
from grouping.fingerprint.frames import site_of
from grouping.fingerprint.javascript_errors import engine_error, is_weak, usual_type
from grouping.fingerprint.learnt import with_learnt
from grouping.fingerprint.mechanism import Mechanism, Reading
from grouping.fingerprint.messages import headline, template
from grouping.fingerprint.source_sites import source_site_of
from schemas.projects import CURRENT_GROUPING, LearntFact, Project

VERSIONS: Final[dict[str, Mechanism]] = {
    "v1": Mechanism(
        "v1",
        Reading(
            site_of,
            lambda _, message: engine_error(message),
            usual_type,
            is_weak,
            is_weak,
            template,
            headline,
            native.one_access,
        ),
        "the first: type, engine-neutral fault and cleaned frames; no line, no release",
        key="v1",
    ),
    "v2": Mechanism(
        "v2",
        Reading(
            source_site_of,
            browser_errors.fault,
            browser_errors.fault_type,
            is_weak,
            browser_errors.is_weak_in_build,
            telling_values.template,
            telling_values.headline,
            native.one_crash,
        ),
        "names as the source has them, files with their folder, callers of helpers, values that tell",
        key="v2",
    ),
}

CURRENT_VERSION: Final = CURRENT_GROUPING
"""That of new projects."""


def known_version(version: str) -> str:
    """A project's version, or the current one if a later release gave it another."""
    return version if version in VERSIONS else CURRENT_VERSION


def mechanism_of(project: Project) -> Mechanism:
    """How new events of a project are grouped: by its version, and by what was learnt of it."""
    version = known_version(project.grouping_version)
    # Version 1 never learns: its projects stay as they are.
    return VERSIONS[version] if version == "v1" else _learnt(version, project.learnt)


def mechanism(version: str | Mechanism) -> Mechanism:
    """A version by its name; or what groups a project."""
    return VERSIONS[version] if isinstance(version, str) else version


@lru_cache(maxsize=1024)
def _learnt(version: str, facts: tuple[LearntFact, ...]) -> Mechanism:
    return with_learnt(VERSIONS[version], facts)
