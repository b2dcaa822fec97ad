"""Hashes of bundlers are removed from the names of files, in any alphabet; words stay."""

import random
import string
from collections import Counter
from typing import Final

import pytest

from grouping.fingerprint.built_files import file_with_folder, script_name

BASE_64: Final = string.ascii_letters + string.digits + "-_"
BASE_36: Final = string.ascii_lowercase + string.digits
BASE_40: Final = string.digits + string.ascii_lowercase + "_-~."
BASE_32: Final = string.ascii_uppercase + "234567"
SITE: Final = "https://shop.example"
BUNDLERS: Final = {
    "Nuxt": (f"{SITE}/_nuxt/%s.js", BASE_64, 8),
    "SvelteKit's chunks": (f"{SITE}/_app/immutable/chunks/%s.js", BASE_64, 8),
    "SvelteKit's nodes": (f"{SITE}/_app/immutable/nodes/2.%s.js", BASE_64, 8),
    "Vite": (f"{SITE}/assets/index-%s.js", BASE_64, 8),
    "Bun": (f"{SITE}/chunk-%s.js", BASE_36, 8),
    "esbuild": (f"{SITE}/main-%s.js", BASE_32, 8),
    "webpack": (f"{SITE}/static/js/main.%s.chunk.js", string.hexdigits[:16], 8),
    "Turbopack": (f"{SITE}/_next/static/chunks/%s.js", BASE_40, 13),
    "Turbopack's runtime": (f"{SITE}/_next/static/chunks/turbopack-%s.js", BASE_40[:38], 13),
    "Next": (f"{SITE}/_next/static/chunks/app/page-%s.js", string.hexdigits[:16], 16),
}
WORDS: Final = """
    checkout invoices settings products category warehouse dashboard OrderRow HomePage CartPage user-settings
    chunk-vendors jquery-ui mp3decoder h264decoder es2015polyfills html5parser login index runtime-main app.module
    order-details price-table shipping-address polyfills vendors-main sidebar tooltip my-orders-list
    2-column-page 2024-report-q orders-0-to-many-rows
"""


def encoded(number: int, letters: str, length: int) -> str:
    """So many digits of a number, the last ones; Turbopack's have room for all 64 bits."""
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(letters))
        digits.append(letters[digit])
    return "".join(reversed(digits))


@pytest.mark.parametrize("bundler", BUNDLERS)
def test_hashes_leave_the_names_of_files(bundler: str) -> None:
    path, letters, length = BUNDLERS[bundler]
    chance = random.Random(bundler)
    hashes = [encoded(chance.getrandbits(64), letters, length) for _ in range(5000)]
    names = Counter(script_name(path % name) for name in hashes)
    assert names.most_common(1)[0][1] >= len(hashes) * 0.98


@pytest.mark.parametrize("word", WORDS.split())
def test_words_stay(word: str) -> None:
    assert script_name(f"{SITE}/assets/{word}.js") == f"{word}.js"


def test_a_source_file_keeps_words_that_look_like_a_hash() -> None:
    assert script_name("src/pages/page-qzvkfrxv.ts") == "page-qzvkfrxv.ts"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/srv/shop/releases/41/main.py", "main.py"),
        ("/srv/shop/current/main.py", "main.py"),
        ("/tmp/_MEIx8dZ2k/main.py", "main.py"),
        ("/tmp/ipykernel_31/1187203377.py", "ipykernel"),
        ("shop/current/views.py", "current/views.py"),
        ("/srv/shop/releases/41/orders/main.py", "orders/main.py"),
    ],
)
def test_folders_of_deployments_leave_the_file(path: str, name: str) -> None:
    assert file_with_folder(path) == name
