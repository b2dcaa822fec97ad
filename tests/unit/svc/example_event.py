"""The event in `docs/library.md`: a real capture, normalised across machines and runs.

`python -m tests.unit.svc.example_event` prints it.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.unit.svc.fuzzed import client as new_client

SOURCE = """\
import json


def pay(order):
    try:
        return json.loads(order)
    except ValueError as error:
        raise RuntimeError("order 4711 cannot be read") from error
"""


def captured() -> dict[str, Any]:
    """The event as it would be posted."""
    client, transport = new_client(environment="staging", identity=True)
    client.scope.set_user({"id": "42", "name": "Jo", "linkBy": {"email": " Jo@Example.com "}})
    client.scope.set_tags({"plan": "pro"})
    client.add_breadcrumb({"type": "nav", "data": {"from": "/cart", "to": "/pay"}})
    client.add_breadcrumb(
        {
            "type": "net",
            "data": {
                "method": "GET",
                "url": "https://user:pw@bank.example/rates?api_key=k-1&day=3",
                "status": 200,
                "durationMs": 41.7,
            },
        }
    )
    client.add_breadcrumb({"type": "track", "message": "checkout", "data": {"items": 3}})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "shop.py"
        file.write_text(SOURCE)
        space: dict[str, Any] = {"__name__": "shop"}
        exec(compile(SOURCE, str(file), "exec"), space)
        try:
            space["pay"]("no order")
        except RuntimeError as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            client.capture(error)
        return _alike(json.loads(transport.events[0]), folder)


def _alike(event: dict[str, Any], folder: str) -> dict[str, Any]:
    text = json.dumps(event).replace(folder, "/srv/shop")
    event = json.loads(text)
    event["id"] = "0199e0c4-5a10-7c3e-8a51-3f0b7d0c9a11"
    event["timestamp"] = "2026-01-31T12:00:00.123Z"
    event["device"]["osVersion"] = "Linux 6.1.0"
    event["app"]["framework"]["version"] = "3.11.9"
    for crumb in event["breadcrumbs"]:
        crumb["timestamp"] = "2026-01-31T11:59:58.001Z"
    error = event["error"]
    while error:
        error["stack"] = [frame for frame in error["stack"] if frame["inApp"]]
        error = error.get("cause")
    return event


def text(value: Any, indent: str = "") -> str:
    """JSON, with each object or array that fits on one line."""
    line = json.dumps(value)
    if not isinstance(value, (dict, list)) or len(indent + line) < 100:
        return line
    inner = indent + "  "
    if isinstance(value, list):
        items = [inner + text(item, inner) for item in value]
    else:
        items = [f"{inner}{json.dumps(key)}: {text(item, inner)}" for key, item in value.items()]
    opening, closing = "[]" if isinstance(value, list) else "{}"
    return opening + "\n" + ",\n".join(items) + f"\n{indent}{closing}"


if __name__ == "__main__":
    print(text(captured()))  # noqa: T201
