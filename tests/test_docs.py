"""Documents say what the code does: generated pages are current, and links lead somewhere."""

import re
from pathlib import Path

import pytest

from schemas.generate.__main__ import FILES

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")]


@pytest.mark.parametrize("name", FILES)
def test_a_generated_file_is_current(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == FILES[name]()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_within_the_repository_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    missing = [t for t in targets if not (page.parent / t).exists()]
    assert missing == []
