"""The demo's sample events, thrown by real JavaScript programs in three engines.

Each use gives them new ids and times.
"""

import gzip
import json
import random
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from schemas.ids import uuid7
from schemas.times import to_ms

FILE = Path(__file__).with_name("events.jsonl.gz")
SPREAD = timedelta(days=5)


def load_samples() -> list[dict[str, Any]]:
    """The shipped events, oldest first."""
    with gzip.open(FILE, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds, as the protocol requires."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def renewed(event: dict[str, Any], moment: datetime) -> dict[str, Any]:
    """The event moved to `moment`, with a new id and its breadcrumbs shifted."""
    shift = moment - datetime.fromisoformat(event["timestamp"])
    crumbs = [
        {**crumb, "timestamp": iso(datetime.fromisoformat(crumb["timestamp"]) + shift)}
        for crumb in event.get("breadcrumbs") or []
    ]
    changed = {"id": str(uuid7(to_ms(moment))), "timestamp": iso(moment)}
    return {**event, **changed, **({"breadcrumbs": crumbs} if crumbs else {})}


def fresh(events: Iterable[dict[str, Any]], now: datetime, rng: random.Random) -> list[dict[str, Any]]:
    """The events at random times in the last days before `now`, more of them recent, none in the future."""
    return [renewed(event, now - SPREAD * rng.random() ** 2) for event in events]
