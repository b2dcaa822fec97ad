"""The reporting library's wheel, made from the package that is installed here; `pip install URL` takes it."""

import base64
import csv
import hashlib
import io
import zipfile
from functools import cache
from importlib import resources
from importlib.metadata import distribution

from dashboard.library_files import LibraryFile


@cache
def library_wheel() -> LibraryFile:
    """The wheel, in the format of https://packaging.python.org/specifications/binary-distribution-format/.

    Its SHA-256 is the same in every replica: files have no times and aren't compressed.
    """
    library = distribution("svc-reporting")
    stem = f"svc_reporting-{library.version}"
    sources = [
        file
        for file in resources.files("svc").iterdir()
        if file.name.endswith(".py") or file.name == "py.typed"
    ]
    files = {f"svc/{file.name}": file.read_bytes() for file in sorted(sources, key=lambda file: file.name)}
    for name in ("METADATA", "WHEEL"):
        files[f"{stem}.dist-info/{name}"] = (library.read_text(name) or "").encode()
    record = f"{stem}.dist-info/RECORD"
    files[record] = _record(files, record)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return LibraryFile(f"{stem}-py3-none-any.whl", packed.getvalue(), "application/zip")


def _record(files: dict[str, bytes], record: str) -> bytes:
    """Name, hash and size of each file."""
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.writerow((name, f"sha256={digest}", len(content)))
    rows.writerow((record, "", ""))
    return table.getvalue().encode()
