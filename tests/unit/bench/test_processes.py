"""CPU and memory of a family of processes that this test has started."""

import os

from bench.processes import cpu_seconds, elsewhere, family, resident_bytes


def test_a_family_is_a_process_and_its_descendants() -> None:
    with elsewhere() as pool:
        child = pool.submit(os.getpid).result()
        assert {os.getpid(), child} <= {each.pid for each in family(os.getpid())}
        assert resident_bytes(os.getpid()) > resident_bytes(child) > 1 << 20
        assert cpu_seconds(os.getpid()) > 0
    assert resident_bytes(child) == 0
