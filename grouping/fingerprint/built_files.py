"""Files of builds and deployments: their names without hashes, ids and the folders that a deployment makes. Pure.

A bundler puts a hash of the contents into a name, last before the extension and set off by `.`, `-` or `_`, or
as the whole name (`output.entryFileNames` of Rollup, `entryNames` of esbuild, `output.filename` of webpack). Its
alphabet has 16 letters (webpack, Next), 32 (esbuild), 36 (Bun, Rollup), 38 or 40 (Turbopack) or 64 (Vite, Nuxt,
SvelteKit), so a hash differs from a word only by its unusual letters.
"""

import re
from functools import lru_cache
from itertools import pairwise
from typing import Final

from grouping.fingerprint.event_view import GroupingFrame
from grouping.fingerprint.frames import CHARACTERS

_SEPARATORS: Final = re.compile(r"([.\-_~])")
# Parts of other lengths are known as hashes only by a digit.
_DIGIT: Final = re.compile(r"\d")
_HEX_HASH: Final = re.compile(r"(?=[a-fA-F]*\d)[0-9a-fA-F]{6,64}\Z")
_SHORTEST: Final = 6
_MIXED_HASH: Final = re.compile(r"(?=[^\d]*\d)(?=[^A-Z]*[A-Z])[0-9A-Za-z]{8,24}\Z")
# Turbopack: 64 bits in 13 letters of base 38 or 40, or 128 in 25, so the first one is a low digit.
_TURBOPACK: Final = re.compile(r"(?:\A|[.\-_~])([0-4](?:[0-9a-z.\-_~]{12}){1,2})(?=\.(?:js|css)\Z)")
# Eight letters of base 64, as Rollup, Vite and esbuild have by default; `._` ends a chunk of Turbopack.
_LAST: Final = re.compile(r"(?:\A|[.\-_~])([\w-]{8})(?=(?:\._)?\.(?:[mc]?js|css)\Z)", re.ASCII)
_KEBAB: Final = re.compile(r"[a-z]*(?:[-_]+[a-z]+)*[-_]*\Z")
_CAMEL: Final = re.compile(r"(?:[A-Z]{0,4}[a-z]+|[A-Z][a-z]*)(?:[A-Z][a-z]{2,})*\Z|[A-Z]+\Z")
_NUMBERED: Final = re.compile(r"\d*([A-Za-z]+)\d*\Z|([A-Za-z]+)\d+([A-Za-z]+)\Z", re.ASCII)
_DEFAULT: Final = 8
# A name that has only an extension: a separator and a part.
_EXTENSION: Final = 2
# The 155 most frequent pairs of letters of English texts and programs: the first letter, and those that follow.
_FOLLOWING: Final = """
    abcdgilmnprst baelu caehklort daeio eacdefglmnprstvxy faio ger haeio iacdeglmnost ke laefilostu mabeimop
    nacdegiostu ocdlmnprstuw paelortu racdeimnorst scehiopstu taehiorstuy uelmnprst vae whio xet yp
"""
_PAIRS: Final = frozenset(letters[0] + second for letters in _FOLLOWING.split() for second in letters[1:])
_WORDLIKE: Final = 0.5
_SURELY: Final = 0.7
# Where bundlers write to: an address, or a folder of a build.
_BUILD: Final = re.compile(r"://|(?:\A|/)(?:_nuxt|_app|_next|assets|chunks|immutable|static|dist|build)/")
# A page with a script inside is named by its address, a worker made of a blob by a uuid of the session.
_UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ID: Final = re.compile(rf"(?:\d+|{_UUID}|(?=[a-f]*\d)[0-9a-f]{{8,64}})\Z", re.IGNORECASE)
# No file's own name is longer.
_NAME_CHARACTERS: Final = 80
_NUMBERED_CHUNK: Final = re.compile(r"\A\d+(?=\.)")
_BUNDLES: Final = (".jsbundle", ".bundle")
_ORIGIN: Final = re.compile(r"\A[a-zA-Z][a-zA-Z0-9+.-]{1,30}://[^/]*")
_PACKAGE: Final = re.compile(r"node_modules/((?:@[^/]+/)?[^/]+)")
# Positions: source lines are never this long; a line this long at the top of a file is a build's.
_FAR_COLUMN: Final = 1000
_FIRST_LINES: Final = 3
_LONG_LINE: Final = 300
# Metro serves developers an unminified bundle, with lines and names.
_UNMINIFIED: Final = "dev=true"
# Folders that each deployment or start creates, right above a file: a release of Capistrano or Deployer and the link
# to it, the temporary folder of PyInstaller, an instance's uuid or a time (`ContainerId` of YARN).
_DEPLOYED: Final = re.compile(
    rf"(?:\A|/)(?:releases/[^/]+|_MEI\w+|(?=\w*?\d{{10}})\w++|{_UUID})/(?=[^/]+\Z)|\A/(?:[^/]+/)+current/(?=[^/]+\Z)"
)
# A segment that is a placeholder: `[id]`, `$id`, `:id`, `_layout`, `@modal`.
_PARAMETER: Final = re.compile(r"[\[{$:@_+].*|\.{1,2}|\d+")
# A project keeps its sources or builds in these (npm, TypeScript; `app` in Next.js and in Node's images), and
# a workspace its projects (npm, Nx, Turborepo): the folders above belong to the machine.
_ROOTS: Final = frozenset({"src", "lib", "dist", "app"})
_WORKSPACES: Final = frozenset({"packages", "apps", "libs"})
_FOLDERS: Final = 4
# A cell of a notebook is a file named by the kernel's process and a hash of the cell.
_CELL: Final = re.compile(r"/ipykernel_\d+/\d+\.py\Z")


def is_minified(frame: GroupingFrame) -> bool:
    """Whether a frame has a position that source text can't have, or a file name that is typical of bundlers."""
    path, line, column = (frame.file or "")[:CHARACTERS], frame.line or 0, frame.column or 0
    far = column >= _FAR_COLUMN or (line <= _FIRST_LINES and column >= _LONG_LINE)
    return far or ".min." in path or _is_built(path)


@lru_cache(maxsize=1024)
def _is_built(path: str) -> bool:
    name = _base_name(path)
    if name.endswith(_BUNDLES):
        return _UNMINIFIED not in path
    if _DIGIT.search(name) is None or _ID.match(name):
        return False
    return any(map(_is_surely_hash, _SEPARATORS.split(name)[2::2]))


def script_name(path: str) -> str:
    """The last part of a script's path or address, without query, content hash, id or platform.

    All bundles have the same name.
    """
    package = _PACKAGE.search(path) if "node_modules" in path else None
    name = _base_name(path)
    if name.endswith(_BUNDLES):
        return "bundle"
    if _ID.match(name):
        return _page_name(path)
    name = _without_hash(name, _BUILD.search(path) is not None)
    if name[:1].isdecimal():
        name = _NUMBERED_CHUNK.sub("", name)
    return f"{package[1]}/{name}" if package else name


def with_folder(path: str, file: str) -> str:
    """The cleaned name of a script after the nearest folder that tells it apart: `orders/route.ts`.

    Frameworks give every route and page the same file name. Without such a folder, the name alone.
    """
    folders = _bare_path(path).replace("\\", "/").split("/")[:-1][: -_FOLDERS - 1 : -1]
    for index, folder in enumerate(folders):
        if folder in _ROOTS:
            return (
                f"{folders[index + 1]}/{file}"
                if folders[index + 2 : index + 3] and folders[index + 2] in _WORKSPACES
                else file
            )
        if folder and not _PARAMETER.match(folder):
            return f"{folder}/{file}"
    return file


def file_with_folder(path: str) -> str:
    """A file of another language with its folder, since file names repeat; without one that a deployment makes."""
    path = path.replace("\\", "/").partition("?")[0].rstrip("/")
    if _CELL.search(path):
        return "ipykernel"
    deployed = _DEPLOYED.search(path)
    return path[deployed.end() :] if deployed else "/".join(path.rsplit("/", 2)[-2:])


def _bare_path(path: str) -> str:
    """A path or the path of an address, without query (after `//&` in Metro's, by jsc-safe-url) and fragment."""
    path = path.partition("?")[0].partition("#")[0].partition("//&")[0]
    return (_ORIGIN.sub("", path) if "://" in path else path).rstrip("/\\")


def hash_in(path: str) -> str:
    """The hash that `script_name` removes from a file's name; empty if there is none."""
    name = _base_name(path)
    kept = _without_hash(name, _BUILD.search(path) is not None)
    return "" if kept == name else removed(name, kept)


def deployed_folder(path: str) -> str:
    """The folders of a deployment that `file_with_folder` removes; empty if there are none."""
    found = _DEPLOYED.search(path.replace("\\", "/"))
    return found[0].strip("/") if found else ""


def removed(before: str, after: str) -> str:
    """The part that only the first name has, without the marks around it."""
    start = end = 0
    while start < len(after) and before[start] == after[start]:
        start += 1
    # Words are whole: `lambda$load` and `load` have no letter in common.
    while start and before[start - 1 : start + 1].isalpha():
        start -= 1
    while end < len(after) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return before[start : len(before) - end].strip("$._-~:\0") or before


def _page_name(path: str) -> str:
    """An address that ends in an id; the part before the id identifies the page."""
    folder = _bare_path(path).rpartition("/")[0].rpartition("/")[2]
    return f"{folder}/*" if folder and not path.startswith("blob:") and not _ID.match(folder) else "*"


def _base_name(path: str) -> str:
    path = _bare_path(path)
    name = path[max(path.rfind("/"), path.rfind("\\")) + 1 :]
    return name.partition(":")[0][-_NAME_CHARACTERS:]


def _without_hash(name: str, in_build: bool) -> str:
    """`main.5f3a2b1c.js`, `index-BxK2s9aQ.js` and `BxK2s9aQ.js` without the parts that change between builds."""
    last = (_TURBOPACK.search(name) if in_build else None) or _LAST.search(name)
    if last is not None and _is_hash(last[1], in_build):
        name = name[: last.start()] + name[last.end() :]
    if _DIGIT.search(name) is None:
        return name
    first, *others = _SEPARATORS.split(name)
    whole = in_build and len(others) == _EXTENSION and _is_long_hash(first)
    kept = ["" if whole or (others and _HEX_HASH.match(first)) else first]
    for separator, part in zip(others[::2], others[1::2], strict=True):
        # Most parts are short; a hostile name has sixty of them.
        if len(part) < _SHORTEST or not (_is_surely_hash(part) or (in_build and _is_long_hash(part))):
            kept.append(separator + part)
    return "".join(kept)


def _is_hash(last: str, in_build: bool) -> bool:
    """Whether the last part of a name is one; outside of builds base 64 is known only by all its kinds of letters."""
    if len(last) > _DEFAULT:
        return not all(part.isdecimal() or part.isalpha() for part in _SEPARATORS.split(last)[::2])
    return _is_no_word(last) and (in_build or _is_dashed(last))


def _is_surely_hash(part: str) -> bool:
    return _HEX_HASH.match(part) is not None or _MIXED_HASH.match(part) is not None


def _is_dashed(part: str) -> bool:
    return (
        ("-" in part or "_" in part)
        and any(map(str.isdigit, part))
        and not (part.islower() or part.isupper())
    )


def _is_long_hash(part: str) -> bool:
    return len(part) > _DEFAULT and any(map(str.isdigit, part)) and _is_no_word(part)


def _is_no_word(part: str) -> bool:
    """Whether a part isn't written as words are: with capitals at their beginnings, numbers around and usual pairs."""
    if _HEX_HASH.match(part):
        return True
    if _KEBAB.match(part) and not part.isalpha():
        return False
    found = _NUMBERED.match(part)
    if found is None or (found[2] and len(part) == _DEFAULT):
        return True
    word = found[1] or found[2] + found[3]
    if not _CAMEL.match(word):
        return True
    doubted = len(part) == _DEFAULT and (len(word) < len(part) or not word[1:].islower())
    word = word.lower().removesuffix("s")
    usual = sum(map(_PAIRS.__contains__, map("".join, pairwise(word))))
    return usual < (_SURELY if doubted else _WORDLIKE) * (len(word) - 1)
