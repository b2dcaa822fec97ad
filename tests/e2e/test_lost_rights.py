"""Each documented right is revoked from its process and granted again while events flow.

The servers are real and refuse whatever is not granted.
"""

from pathlib import Path

import pytest

from tests.rights_rig import RUNNING, by_right, documented, one_of_each, plan, seen, table


async def test_without_a_right_a_process_names_it_and_all_is_as_before_once_it_is_back(
    tmp_path: Path,
) -> None:
    """As below, with one right of each process."""
    found = await seen(tmp_path, one_of_each())
    assert sorted(one.process for one in found) == sorted(RUNNING)
    assert [(one.rights, one.loud) for one in found if one.loud] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", plan())
async def test_what_is_seen_without_each_right_is_documented_and_all_is_as_before_once_it_is_back(
    part: str, tmp_path: Path
) -> None:
    """Revoke and restore each right of one part, and compare what is seen with the document.

    `seen` raises unless readiness and the metric name each right, the process works again by itself, and
    every event is stored once.
    """
    found = await seen(tmp_path, plan()[part])
    assert [(one.rights, one.loud) for one in found if one.loud] == []
    processes = {one.process for one in found}
    expected = {key: row for key, row in by_right(documented()).items() if key[0] in processes}
    assert by_right(table(found).splitlines()) == expected
