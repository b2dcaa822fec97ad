"""Under which field a refused event is counted: of few different names, whatever clients send."""

import pytest

from edge.http.endpoints import field_of
from schemas.errors import Detail


@pytest.mark.parametrize(
    ("field", "counted"),
    [
        ("kind", "kind"),
        ("error.stack[17].line", "error.stack.line"),
        ("error.cause.cause.cause.stack[0].file", "error.cause.stack.file"),
        ("tags.anything.a client\nwrote", "tags"),
        ("tags", "tags"),
        ("user.linkHashes.email", "user.linkHashes"),
        ("breadcrumbs[3].data.url", "breadcrumbs.data"),
        ("breadcrumbs[3].timestamp", "breadcrumbs.timestamp"),
    ],
)
def test_a_field_has_no_positions_and_no_keys_of_clients(field: str, counted: str) -> None:
    assert field_of(Detail(field, "expected a string")) == counted
