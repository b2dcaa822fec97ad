"""Events for the tests of the edge."""

import json
from typing import Any

from schemas.ids import uuid7


def event(**fields: Any) -> dict[str, Any]:
    """A full event of the protocol; fields given replace its own."""
    return {
        "id": str(uuid7()),
        "timestamp": "2026-01-31T12:00:00.000Z",
        "kind": "error",
        "platform": "javascript",
        "release": "shop@1.2.3+45",
        "environment": "prod",
        "device": {"os": "web", "osVersion": "14", "model": "Pixel 8", "locale": "en-GB"},
        "app": {
            "version": "1.2.3",
            "build": "45",
            "framework": {"name": "react-native", "version": "0.74.3"},
        },
        "user": {"id": "u-1", "anonymous": False},
        "tags": {"feature": "checkout"},
        "breadcrumbs": [
            {"timestamp": "2026-01-31T11:59:59Z", "type": "nav", "data": {"from": "/", "to": "/cart"}},
            {
                "timestamp": "2026-01-31T11:59:59.5Z",
                "type": "net",
                "data": {
                    "method": "GET",
                    "url": "https://api.example.com/cart",
                    "status": 500,
                    "durationMs": 12,
                },
            },
            {
                "timestamp": "2026-01-31T11:59:59.5Z",
                "type": "log",
                "data": {"level": "warn", "message": "slow"},
            },
            {
                "timestamp": "2026-01-31T11:59:59.6Z",
                "type": "user",
                "data": {"action": "tap", "target": "#pay"},
            },
            {"timestamp": "2026-01-31T11:59:59.7Z", "type": "custom", "data": {"anything": [1, {"a": None}]}},
        ],
        "error": {
            "type": "TypeError",
            "message": "null is not an object",
            "stack": [
                {
                    "function": "pay",
                    "file": "src/pay.js",
                    "line": 10,
                    "column": 3,
                    "inApp": True,
                    "absolutePath": "/app/src/pay.js",
                    "preContext": ["a", "b"],
                    "contextLine": "boom",
                    "postContext": ["c"],
                }
            ],
            "cause": {"type": "Error", "message": "root", "stack": [], "cause": None},
        },
        "fingerprint": ["pay", 1],
        "traceId": None,
        "spanId": None,
    } | fields


def encoded(**fields: Any) -> bytes:
    """The same as JSON."""
    return json.dumps(event(**fields)).encode()
