"""A changed project over its record: fields that a newer version wrote, and this one doesn't know, stay. Pure."""

from typing import Any

import msgspec
from msgspec import Struct

from schemas.projects import Project

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def written_over(record: bytes, project: Project) -> bytes:
    """The project as JSON, with the fields of its record that aren't fields of a project.

    The same holds for the parts of a project, such as a token or a rule: each is found in the record by its first
    field, a name or an id.
    """
    return msgspec.json.encode(_over(_decode(record), project))


def _over(old: Any, new: Any) -> Any:
    if isinstance(new, Struct) and isinstance(old, dict):
        names = dict(zip(new.__struct_encode_fields__, new.__struct_fields__, strict=True))
        unknown = {name: value for name, value in old.items() if name not in names}
        # Defaults that the struct leaves out are left out here too.
        known = {name: _over(old.get(name), getattr(new, names[name])) for name in msgspec.to_builtins(new)}
        return known | unknown
    if isinstance(new, tuple) and isinstance(old, list):
        return [_over(_namesake(old, item), item) for item in new]
    return new


def _namesake(items: list[Any], new: Any) -> Any:
    """The item of a record whose first field equals that of a struct; None without one."""
    if not isinstance(new, Struct):
        return None
    field, name = new.__struct_encode_fields__[0], getattr(new, new.__struct_fields__[0])
    return next((item for item in items if item.get(field) == name), None)
