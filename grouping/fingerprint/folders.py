"""The file of a JavaScript frame with the folder that tells it apart. Pure.

Frameworks give every route and page the same file name.
"""

import re
from typing import Final

from grouping.fingerprint.built_files import bare_path

# A segment that is a placeholder: `[id]`, `$id`, `:id`, `_layout`, `@modal`.
_PARAMETER: Final = re.compile(r"[\[{$:@_+].*|\.{1,2}|\d+")
# A project keeps its sources or builds in these (npm, TypeScript; `app` in Next.js and in Node's images), and
# a workspace its projects (npm, Nx, Turborepo): the folders above belong to the machine.
_ROOTS: Final = frozenset({"src", "lib", "dist", "app"})
_WORKSPACES: Final = frozenset({"packages", "apps", "libs"})
_FOLDERS: Final = 4


def file_with_folder(path: str, file: str) -> str:
    """The cleaned name of a file after the nearest folder that tells it apart: `orders/route.ts`.

    Without such a folder, the name alone.
    """
    folders = bare_path(path).replace("\\", "/").split("/")[:-1][: -_FOLDERS - 1 : -1]
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
