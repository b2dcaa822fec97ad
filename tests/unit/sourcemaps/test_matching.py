"""A frame's file finds its map by release and path, or by a name with a hash of the content."""

import pytest

from schemas.read_api import ArtifactLink
from sourcemaps.matching import file_path, map_of, source_path

RELEASE = "shop@1.0.0+1"


def link(path: str, digest: str = "a", release: str = RELEASE) -> ArtifactLink:
    return ArtifactLink(release, path, "sourceMap", digest)


@pytest.mark.parametrize(
    ("file", "path"),
    [
        ("https://shop.example/static/app.js?v=3#x", "static/app.js"),
        ("app:///index.android.bundle", "index.android.bundle"),
        ("~/static/app.js", "static/app.js"),
        ("./app.js", "app.js"),
        ("C:\\build\\app.js", "C:/build/app.js"),
    ],
)
def test_a_path_has_no_origin_and_no_query(file: str, path: str) -> None:
    assert file_path(file) == path


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("../../src/cart.ts", "src/cart.ts"),
        ("webpack://shop/./src/cart.ts", "src/cart.ts"),
        ("webpack:///src/cart.ts", "src/cart.ts"),
        ("/app/src/cart.ts", "app/src/cart.ts"),
        ("../node_modules/react/index.js", "node_modules/react/index.js"),
    ],
)
def test_a_source_has_a_path_that_people_know(source: str, path: str) -> None:
    assert source_path(source) == path


def test_the_release_and_the_end_of_the_path_decide() -> None:
    links = [link("app.js", "a"), link("admin/app.js", "b"), link("app.js", "c", "shop@2.0.0+2")]
    found = map_of("https://shop.example/admin/app.js", RELEASE, links)
    assert found is not None
    assert found.digest == "b"
    found = map_of("https://shop.example/app.js", "shop@2.0.0+2", links)
    assert found is not None
    assert found.digest == "c"
    assert map_of("https://shop.example/app.js", "shop@3.0.0+3", links) is None
    assert map_of("https://shop.example/myapp.js", RELEASE, links) is None


def test_a_bare_name_needs_a_file_of_its_own() -> None:
    assert map_of("app.js", RELEASE, [link("one/app.js", "a")]) is not None
    assert map_of("app.js", RELEASE, [link("one/app.js", "a"), link("two/app.js", "b")]) is None


def test_a_hashed_name_needs_no_release_while_it_has_one_content() -> None:
    other = "shop@9.9.9+9"
    hashed = "assets/index-BIB-3fzx.js"
    assert map_of(hashed, other, [link(hashed)]) is not None
    assert map_of(hashed, other, [link(hashed), link(hashed, "a", "shop@2.0.0+2")]) is not None
    assert map_of(hashed, other, [link(hashed), link(hashed, "b", "shop@2.0.0+2")]) is None
    for plain in ("app.min.js", "index.android.bundle", "assets/index-settings.js"):
        assert map_of(plain, other, [link(plain)]) is None
