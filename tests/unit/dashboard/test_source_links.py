"""Links to the source: filled from anyone's events, and never leading elsewhere."""

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.view.source_links import frame_link, release_link
from dashboard.view.stack_view import FrameView

TEMPLATE = "https://git.example/shop/{build}/{file}#L{line}"


def frame(file: str, line: int = 9, *, in_app: bool = True) -> FrameView:
    return FrameView("f", file, line, 1, in_app, ())


@pytest.mark.parametrize(
    ("template", "release", "one", "link"),
    [
        (
            TEMPLATE,
            "shop@1.2+a1b2",
            frame("src/my cart.ts"),
            "https://git.example/shop/a1b2/src/my%20cart.ts#L9",
        ),
        (
            TEMPLATE,
            "shop@1.2+a1b2",
            frame("/srv/a?b#c.py"),
            "https://git.example/shop/a1b2/srv/a%3Fb%23c.py#L9",
        ),
        (TEMPLATE, "@scope/app@1.2+a/b", frame("a.py"), "https://git.example/shop/a%2Fb/a.py#L9"),
        ("https://g/?r={release}", "a@1+2&x", frame(""), "https://g/?r=a%401%2B2%26x"),
        ("https://g/{app}/v{version}", "a@1.0+2", frame(""), "https://g/a/v1.0"),
        (TEMPLATE, "shop@1.2+a1b2", frame("lib.js", in_app=False), ""),
        (TEMPLATE, "shop@1.2+a1b2", frame("a.py", line=0), ""),
        (TEMPLATE, "shop@1.2", frame("a.py"), ""),
        (TEMPLATE, "shop@1.2+..", frame("a.py"), ""),
        (TEMPLATE, "shop@1.2+a1b2", frame("src/../../../sign-out"), ""),
        ("", "shop@1.2+a1b2", frame("a.py"), ""),
    ],
)
def test_a_frame_of_the_application_leads_to_its_line(
    template: str, release: str, one: FrameView, link: str
) -> None:
    assert frame_link(template, release, one) == link


@pytest.mark.parametrize(
    ("template", "link"),
    [
        (TEMPLATE, "https://git.example/shop/a1b2"),
        ("https://g/{file}?at={build}", ""),
        ("https://g/tree/{release}", "https://g/tree/shop%401.2%2Ba1b2"),
        ("https://g/main/{file}", ""),
        ("", ""),
    ],
)
def test_a_release_leads_to_the_part_before_the_file(template: str, link: str) -> None:
    assert release_link(template, "shop@1.2+a1b2") == link


@given(st.text(st.characters(exclude_categories=())), st.text(st.characters(exclude_categories=())))
def test_no_event_leads_out_of_the_folder(release: str, file: str) -> None:
    link = frame_link(TEMPLATE, f"{release}+{release}x", frame(file))
    parts = urlsplit(link or "https://git.example/shop/")
    assert (parts.netloc, parts.query, parts.path.startswith("/shop/")) == ("git.example", "", True)
    assert ".." not in parts.path.split("/")
