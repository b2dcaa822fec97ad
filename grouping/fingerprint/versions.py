"""The registry of grouping versions: fingerprints are stored with their version's name, and versions never change."""

from typing import Final

from grouping.fingerprint import browser_errors, native, telling_values
from grouping.fingerprint.frames import site_of
from grouping.fingerprint.javascript_errors import engine_error, is_weak, usual_type
from grouping.fingerprint.mechanism import Mechanism, Reading
from grouping.fingerprint.messages import headline, template
from grouping.fingerprint.sites import source_site_of
from schemas.projects import CURRENT_GROUPING

VERSIONS: Final[dict[str, Mechanism]] = {
    "v1": Mechanism(
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
    ),
    "v2": Mechanism(
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
    ),
}

CURRENT_VERSION: Final = CURRENT_GROUPING
"""That of new projects."""


def known_version(version: str) -> str:
    """A project's version, or the current one if a later release gave it another."""
    return version if version in VERSIONS else CURRENT_VERSION
