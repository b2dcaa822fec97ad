"""The file of a JavaScript frame with the folder that tells it apart: frameworks give every route and page one file name. Pure."""

import re
from typing import Final

from grouping.fingerprint import javascript

# A segment that stands for a value: `[id]`, `$id`, `:id`, `_layout`, `@modal`.
_PARAMETER: Final = re.compile(r"[\[{$:@_+].*|\.{1,2}|\d+")
# Where a project keeps its sources or builds (npm, TypeScript; `app` in Next.js and in Node's images), and a workspace its projects (npm,
# Nx, Turborepo): what is above is the machine's.
_ROOTS: Final = frozenset({"src", "lib", "dist", "app"})
_WORKSPACES: Final = frozenset({"packages", "apps", "libs"})
_FOLDERS: Final = 4


def file_with_folder(path: str, file: str) -> str:
    """`orders/route.ts`: the cleaned name of a file after the nearest folder that says something; the name alone without one."""
    folders = javascript.bare_path(path).replace("\\", "/").split("/")[:-1][: -_FOLDERS - 1 : -1]
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
