import subprocess
import sys
from urllib.request import proxy_bypass

import pytest
from clickhouse_connect.driver.httputil import check_env_proxy

from local.proxies import bypass_proxies

PROXY = "http://proxy.example:3128"
PROGRAM = "import os, cli.__main__ as m; m.svc.main = lambda **_: print(os.environ['no_proxy']); m.main()"


def test_commands_reach_this_machine_without_its_proxy_and_the_rest_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"http_proxy": PROXY, "no_proxy": "", "NO_PROXY": "intern.example"}.items():
        monkeypatch.setenv(name, value)
    assert not proxy_bypass("127.0.0.1:8080")
    monkeypatch.setenv("no_proxy", subprocess.check_output([sys.executable, "-P", "-c", PROGRAM], text=True))
    for host in ("127.0.0.1", "localhost", "::1", "intern.example"):
        assert check_env_proxy("http", host, 8123) is None
    assert all(map(proxy_bypass, ("127.0.0.1:8080", "localhost:8080", "[::1]:8080", "intern.example")))
    assert check_env_proxy("http", "clickhouse.example", 8123) == PROXY


@pytest.mark.parametrize("given", ["*", "localhost,127.0.0.1,::1,[::1]"])
def test_nothing_is_added_where_the_proxy_is_for_other_hosts(given: str) -> None:
    environ = {"no_proxy": given}
    bypass_proxies(environ)
    assert environ == {"no_proxy": given}
