import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from multidict import CIMultiDict

from dashboard.auth.proxy_identity import (
    PROOF_HEADER,
    HeadersRefused,
    ProxyHeaders,
    ProxyUser,
    is_name,
    parse_proxy,
)
from schemas.errors import BadSetting
from tests.unit.dashboard.site import SETTINGS

SECRET = "sixteen letters!"
HEADERS = ProxyHeaders("X-Forwarded-User", "X-Forwarded-Groups")
PROOF = (PROOF_HEADER, SECRET)
ANN = ("X-Forwarded-User", "ann@shop.example")


def read(*given: tuple[str, str], is_trusted: bool = True, names: ProxyHeaders = HEADERS) -> ProxyUser | None:
    return names.read(CIMultiDict(given), is_trusted=is_trusted, is_secret=lambda text: text == SECRET)


def test_the_proxy_names_a_person_and_their_groups() -> None:
    assert read(ANN, PROOF) == ProxyUser("ann@shop.example", ())
    groups = ("x-forwarded-groups", "dev, ,shop-team,")
    assert read(ANN, PROOF, groups) == ProxyUser("ann@shop.example", ("dev", "shop-team"))
    assert read(("x-forwarded-user", "Ann Lee"), PROOF) == ProxyUser("Ann Lee", ())


def test_without_a_person_no_one_is_signed_in() -> None:
    assert read() is None
    assert read(PROOF) is None
    assert read(PROOF, ("X-Forwarded-Groups", "sre")) is None
    assert read(ANN, PROOF, names=ProxyHeaders()) is None


def test_a_header_with_underscores_is_another_header() -> None:
    assert read(("X_Forwarded_User", "ann"), ("Svc_Proxy_Secret", SECRET), is_trusted=False) is None
    with pytest.raises(HeadersRefused, match="missing or wrong"):
        read(ANN, ("Svc_Proxy_Secret", SECRET))


@pytest.mark.parametrize("header", [ANN, PROOF, ("X-Forwarded-Groups", "sre")])
def test_another_address_is_refused_even_with_the_secret(header: tuple[str, str]) -> None:
    with pytest.raises(HeadersRefused) as refused:
        read(header, is_trusted=False)
    assert refused.value.reason == "address"


@pytest.mark.parametrize("proof", ["", "sixteen letters", SECRET + " ", SECRET.upper()])
def test_another_secret_is_refused(proof: str) -> None:
    for headers in ([(PROOF_HEADER, proof)], [ANN, (PROOF_HEADER, proof)], [ANN]):
        with pytest.raises(HeadersRefused) as refused:
            read(*headers)
        assert refused.value.reason == "secret"


@pytest.mark.parametrize("again", [ANN, PROOF, ("X-Forwarded-Groups", "dev"), ("x-forwarded-user", "bob")])
def test_a_repeated_header_is_refused(again: tuple[str, str]) -> None:
    with pytest.raises(HeadersRefused) as refused:
        read(ANN, PROOF, ("X-Forwarded-Groups", "dev"), again)
    assert refused.value.reason == "repeated"


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", "ann ", " ann", "\u00a0", "ann\u200b", "ann\tlee", "\udcff", "\u202eann", "x" * 201),
        *("admin", "Admin", "ＡＤＭＩＮ", "system", "SYSTEM", "rebuild", "Me", "team", "key ci", "Ｋey ci"),
    ],
)
def test_a_doubtful_name_is_refused(name: str) -> None:
    with pytest.raises(HeadersRefused) as refused:
        read(("X-Forwarded-User", name), PROOF)
    assert refused.value.reason == "name"


@pytest.mark.parametrize("name", ["zoë", "李雷", "o'neil+x@shop.example", "x" * 200, "administrator", "key"])
def test_a_plain_name_is_taken(name: str) -> None:
    assert read(("X-Forwarded-User", name), PROOF) == ProxyUser(name, ())


@given(st.text())
def test_a_taken_name_is_one_line_without_spaces_around_it(name: str) -> None:
    if is_name(name):
        assert name
        assert len(name) <= 200
        assert name == name.strip()
        assert len(name.splitlines()) == 1


PROXIED = replace(
    SETTINGS,
    dashboard_trusted_proxies="127.0.0.0/8",
    dashboard_proxy_user_header="X-Forwarded-User",
    dashboard_proxy_groups_header="X-Forwarded-Groups",
    dashboard_proxy_secret=SECRET,
)


def test_settings_name_the_headers() -> None:
    assert parse_proxy(SETTINGS) == ProxyHeaders()
    assert parse_proxy(PROXIED) == HEADERS
    assert parse_proxy(replace(PROXIED, dashboard_password_sign_in=False)) == HEADERS


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"dashboard_proxy_secret": ""}, "PROXY_SECRET"),
        ({"dashboard_proxy_secret": "fifteen letters"}, "PROXY_SECRET"),
        ({"dashboard_trusted_proxies": " "}, "TRUSTED_PROXIES"),
        ({"dashboard_proxy_user_header": ""}, "USER_HEADER"),
        ({"dashboard_proxy_user_header": "X_User"}, "USER_HEADER"),
        ({"dashboard_proxy_groups_header": "x-forwarded-user"}, "two headers"),
        ({"dashboard_proxy_user_header": PROOF_HEADER}, "two headers"),
    ],
)
def test_incomplete_settings_stop_the_start(changes: dict[str, str], named: str) -> None:
    with pytest.raises(BadSetting, match=named):
        parse_proxy(replace(PROXIED, **changes))


def test_without_the_password_a_proxy_is_required() -> None:
    with pytest.raises(BadSetting, match="USER_HEADER"):
        parse_proxy(replace(SETTINGS, dashboard_password_sign_in=False))
