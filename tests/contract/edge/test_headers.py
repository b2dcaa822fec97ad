"""The headers of section 5 (contract, section 2, point 4), tokens, and CORS (point 12)."""

import pytest
from multidict import CIMultiDict

from schemas.ids import new_token
from schemas.projects import Token
from tests.contract.edge.live_edge import MOMENT, LiveEdge
from tests.edge_events import encoded


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Content_Type", "application/json"),
        ("Content_Type", "application/json; charset=utf-8"),
        ("Content_Type", "application/json;charset=UTF-8;x=y"),
        ("Content_Type", "Application/JSON"),
        ("Content_Encoding", "identity"),
        ("Content_Encoding", "Identity"),
        ("Svc_Sdk", "svc-js/1.0"),
        ("Svc_Sdk", "react-native/0.1.0-beta.1+5"),
        ("Svc_Sdk", "@scope/sdk/2"),
        ("Svc_Sdk", "curl/8"),
        ("Idempotency_Key", "anything"),
    ],
)
@pytest.mark.holds("protocol 5", "contract 2.4")
async def test_header_of_a_declared_form_is_accepted(edge: LiveEdge, name: str, value: str) -> None:
    assert (await edge.post(encoded(), headers=edge.headers(None, **{name: value}))).status == 202
    assert edge.stored()[0].sdk == (value if name == "Svc_Sdk" else "svc-js/1.2.3")


REFUSED = {
    "Content-Type": [
        "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "text/plain", "application/jsonx", ";"
    ],
    "Content-Encoding": ["br", "deflate", "zstd", "x-gzip", "gzip, gzip", "compress"],
    "Svc-Sdk": ["svc-js", "/1.0", "svc-js/", "svc js/1.0", "a/1 0", "x" * 200 + "/1", "ä/1"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in REFUSED for value in REFUSED[name]])
@pytest.mark.holds("protocol 5", "contract 2.4")
async def test_header_of_another_form_is_refused_by_name(edge: LiveEdge, name: str, value: str) -> None:
    answer = await edge.post(encoded(), headers=edge.headers() | {name: value})
    assert (answer.status, answer.fields) == (400, [name])


@pytest.mark.parametrize("name", ["Authorization", "Svc-Sdk", "Content-Type", "Content-Encoding"])
async def test_header_in_two_lines_is_refused_by_name(edge: LiveEdge, name: str) -> None:
    given = CIMultiDict(edge.headers(Content_Encoding="identity"))
    given.add(name, given[name])
    answer = await edge.post(encoded(), headers=given)
    if name == "Content-Type":
        assert answer.json["details"] == [{"field": "request", "message": "malformed HTTP request"}]
    else:
        assert (answer.status, answer.fields) == (401 if name == "Authorization" else 400, [name])
    assert edge.stored() == []


async def test_missing_content_type_is_refused(edge: LiveEdge) -> None:
    async with edge.session.post(
        edge.url + "/v1/events",
        data=encoded(),
        headers=edge.headers(Content_Type=""),
        skip_auto_headers=["Content-Type"],
    ) as response:
        assert response.status == 400
        assert (await response.json())["details"] == [{"field": "Content-Type", "message": "required"}]


@pytest.mark.holds("protocol 4")
async def test_every_faulty_header_is_listed(edge: LiveEdge) -> None:
    headers = edge.headers(Svc_Sdk="", Content_Type="text/plain", Content_Encoding="br")
    answer = await edge.post(encoded(), headers=headers)
    assert answer.fields == ["Svc-Sdk", "Content-Type", "Content-Encoding"]
    assert answer.json["error"] == "validationFailed"


MISSING = "required: `Bearer` and the project's token"
MALFORMED = "expected `Bearer` and a token: svc_pk_ and 26 characters of lower-case Crockford base32"
SECRET = "this is a secret key of the read API: send events with a project token (svc_pk_)"
UNKNOWN = "the token has the right form, but is unknown or revoked"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", MISSING), ("Bearer", MALFORMED), ("Bearer ", MALFORMED), ("Basic dTpw", MALFORMED),
        ("Bearer svc_pk_", MALFORMED), ("Bearer svc_sk_" + "0" * 26, SECRET),
        ("Bearer svc_pk_" + "u" * 26, MALFORMED), ("Bearer " + "x" * 4000, MALFORMED),
        ("svc_pk_" + "0" * 26, MALFORMED), (f"Bearer {new_token()}", UNKNOWN), ("Bearer {TOKEN}", MALFORMED),
    ],
    ids=["missing", "no token", "blank", "scheme", "short", "secret key", "alphabet", "long", "no scheme", "unknown",
         "upper case"],
)  # fmt: skip
@pytest.mark.holds("protocol 5", "protocol 7")
async def test_missing_malformed_or_unknown_token_is_401_which_names_the_fault(
    edge: LiveEdge, value: str, message: str
) -> None:
    given = value.replace("{TOKEN}", edge.project.tokens[0].token.upper())
    answer = await edge.post(encoded(), headers=edge.headers(Authorization=given))
    assert answer.status == 401
    details = [{"field": "Authorization", "message": message}]
    assert answer.json == {"error": "unauthorized", "details": details}


async def test_project_may_have_several_tokens_and_a_revoked_one_is_401(edge: LiveEdge) -> None:
    good, revoked = Token(new_token(), MOMENT), Token(new_token(), MOMENT, revoked_at=MOMENT)
    other = Token(new_token(), MOMENT)
    edge.add_project("3", tokens=(good, revoked, other))
    answers = [
        await edge.post(encoded(), headers=edge.headers(Authorization=f"Bearer {token}"))
        for token in (good.token, revoked.token, other.token, new_token())
    ]
    assert [answer.status for answer in answers] == [202, 401, 202, 401]
    assert answers[1].body == answers[3].body, "a revoked token is answered like one that never was"


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "bearer "])
async def test_scheme_is_read_in_either_case_and_spaces_may_follow_it(edge: LiveEdge, scheme: str) -> None:
    headers = edge.headers()
    headers["Authorization"] = headers["Authorization"].replace("Bearer", scheme)
    assert (await edge.post(encoded(), headers=headers)).status == 202


SECTION_5 = "authorization,content-encoding,content-type,idempotency-key,svc-sdk"


@pytest.mark.parametrize("path", ["/v1/events", "/v1/events:batch", "/v1/events/"])
@pytest.mark.parametrize(
    "requested",
    [SECTION_5, "authorization,baggage,content-type,sentry-trace,svc-sdk,traceparent,tracestate,x-a_b.c"],
)
@pytest.mark.holds("contract 2.12")
async def test_preflight_lets_a_page_of_any_origin_send_every_header_that_it_asks_for(
    edge: LiveEdge, path: str, requested: str
) -> None:
    preflight = {
        "Origin": "https://shop.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": requested,
    }
    answer = await edge.post(b"", path, headers=preflight, method="OPTIONS")
    assert answer.status == 204
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "POST" in answer.headers["Access-Control-Allow-Methods"]
    allowed = {name.strip().lower() for name in answer.headers["Access-Control-Allow-Headers"].split(",")}
    assert allowed >= set(requested.split(","))


@pytest.mark.parametrize("requested", [None, "", "a<b>", "\xe9"])
async def test_preflight_that_names_no_headers_lists_those_of_section_5(
    edge: LiveEdge, requested: str | None
) -> None:
    headers = {} if requested is None else {"Access-Control-Request-Headers": requested}
    answer = await edge.post(b"", headers=headers, method="OPTIONS")
    assert answer.status == 204
    allowed = answer.headers["Access-Control-Allow-Headers"].lower().split(", ")
    assert sorted(allowed) == SECTION_5.split(",")


async def test_every_answer_can_be_read_by_a_page_of_any_origin(edge: LiveEdge) -> None:
    answers = [
        await edge.post(encoded()),
        await edge.post(b"{}"),
        await edge.post(b"{}", headers={}),
        await edge.post(b"{}", "/nowhere"),
        await edge.post(b"{}", method="PUT"),
    ]
    assert [answer.status for answer in answers] == [202, 400, 401, 404, 405]
    assert {answer.headers["Access-Control-Allow-Origin"] for answer in answers} == {"*"}
    assert {answer.headers["Access-Control-Expose-Headers"] for answer in answers} == {"Retry-After"}


async def test_server_does_not_reveal_its_software(edge: LiveEdge) -> None:
    assert (await edge.post(encoded())).headers["Server"] == "svc"
