"""What makes values of a newer JSON Schema unreadable by who knows an older one. Pure."""

from collections.abc import Iterator
from typing import Any, Final

Schema = dict[str, Any]
_DEFINITION: Final = "#/$defs/"
_UPPER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems")
_LOWER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems")


def breaking(old: Schema, new: Schema) -> list[str]:
    """The places where a value of `new` may surprise a reader of `old`, as JSON pointers with a reason."""
    return list(_Comparison(old, new).of(old, new, ""))


class _Comparison:
    def __init__(self, old: Schema, new: Schema) -> None:
        self._old = old
        self._new = new
        self._begun: set[tuple[str, str]] = set()
        """Definitions that are being compared: within themselves they agree."""

    def of(self, old: Schema, new: Schema, at: str) -> Iterator[str]:
        pair = old.get("$ref", ""), new.get("$ref", "")
        if pair in self._begun:
            return
        if all(pair):
            self._begun.add(pair)
        yield from self._of_resolved(_resolved(self._old, old), _resolved(self._new, new), at)
        self._begun.discard(pair)

    def _of_resolved(self, old: Schema, new: Schema, at: str) -> Iterator[str]:
        if "anyOf" not in old and "anyOf" not in new:
            yield from self._of_branch(old, new, at)
            return
        branches = old.get("anyOf", [old])
        for branch in new.get("anyOf", [new]):
            found = [list(self.of(other, branch, at)) for other in branches]
            if all(found):
                yield from min(found, key=len)

    def _of_branch(self, old: Schema, new: Schema, at: str) -> Iterator[str]:
        if _types(old) and not (_types(new) and _types(new) <= _types(old)):
            yield f"{at or '/'}: type {sorted(_types(new)) or 'any'} instead of {sorted(_types(old))}"
            return
        for name in ("const", "enum"):
            if (wanted := _values(old)) and not (_values(new) and _values(new) <= wanted):
                yield f"{at}: values beyond those of {name}"
                return
        for limit in (*_UPPER, *_LOWER):
            if limit in old and (limit not in new or _is_wider(limit, old[limit], new[limit])):
                yield f"{at}: {limit} is wider"
        yield from self._of_properties(old, new, at)
        for part in ("items", "additionalProperties"):
            if isinstance(old.get(part), dict):
                yield from self.of(old[part], new.get(part) or {}, f"{at}/{part}")

    def _of_properties(self, old: Schema, new: Schema, at: str) -> Iterator[str]:
        for name in set(old.get("required", ())) - set(new.get("required", ())):
            yield f"{at}/{name}: may be missing"
        properties = new.get("properties", {})
        for name, schema in old.get("properties", {}).items():
            if name not in properties:
                yield f"{at}/{name}: is missing"
            else:
                yield from self.of(schema, properties[name], f"{at}/{name}")
        if old.get("additionalProperties") is False:
            for name in properties.keys() - old.get("properties", {}).keys():
                yield f"{at}/{name}: is new, where nothing may be added"


def _resolved(document: Schema, schema: Schema) -> Schema:
    while "$ref" in schema:
        schema = document["$defs"][schema["$ref"].removeprefix(_DEFINITION)]
    return schema


def _types(schema: Schema) -> set[str]:
    found = schema.get("type", ())
    types = {found} if isinstance(found, str) else set(found)
    # Every integer is a number.
    return types | ({"integer"} if "number" in types else set())


def _values(schema: Schema) -> set[str]:
    """The values that are allowed, as text; empty if no list restricts them."""
    values = [schema["const"]] if "const" in schema else schema.get("enum", [])
    return {repr(value) for value in values}


def _is_wider(limit: str, old: float, new: float) -> bool:
    return new > old if limit in _UPPER else new < old
