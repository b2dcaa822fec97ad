"""The sample events of the demo: really thrown by JavaScript programs in three engines, given new ids and times at each use."""

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
    """The events as they are shipped, oldest first."""
    with gzip.open(FILE, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds, as the protocol asks."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def renewed(event: dict[str, Any], moment: datetime) -> dict[str, Any]:
    """The event as if it had happened at `moment`: a new id, its breadcrumbs moved along."""
    shift = moment - datetime.fromisoformat(event["timestamp"])
    crumbs = [
        {**crumb, "timestamp": iso(datetime.fromisoformat(crumb["timestamp"]) + shift)}
        for crumb in event.get("breadcrumbs") or []
    ]
    changed = {"id": str(uuid7(to_ms(moment))), "timestamp": iso(moment)}
    return {**event, **changed, **({"breadcrumbs": crumbs} if crumbs else {})}


def fresh(events: Iterable[dict[str, Any]], now: datetime, rng: random.Random) -> list[dict[str, Any]]:
    """The events at random moments of the last days before `now`, more of them lately, none in the future."""
    return [renewed(event, now - SPREAD * rng.random() ** 2) for event in events]
