"""The check of `svc doctor` and `svc up` for ClickHouse rows lost to a full or failing disk."""

import asyncio
from collections.abc import Sequence
from typing import Final

from broker.consumer_lag import passed, readers_of
from broker.errors import KafkaError
from cli.doctor.basic_checks import Finding
from schemas.errors import BadSetting
from schemas.settings import MigrateSettings
from storage.client import ClickHouseError, open_client
from storage.maintain.audit.damage import BrokenPart, broken_parts, without_issue
from storage.shards import whole_url

NAME: Final = "stored rows"
REPAIR: Final = "run `svc reconcile --repair`"
_NAMED: Final = 3
_PASS_SECONDS: Final = 15.0


def check_damage(settings: MigrateSettings, seconds: float = _PASS_SECONDS) -> list[Finding]:
    """One finding about the stored rows, or none.

    There is none if ClickHouse or Kafka isn't known or doesn't answer, which another check reports. An issue is lost
    if it is missing once the pipeline has read up to the log end at the time of the check; it gets `seconds` for that.
    """
    if not settings.shard_urls:
        return []
    try:
        broken = [part for url in settings.shard_urls for part in _broken_at(url)]
        client = open_client(whole_url(settings, settings.clickhouse_url))
        try:
            missing = without_issue(client)
            if missing and not broken:
                if behind := asyncio.run(passed(settings, readers_of(settings), seconds)):
                    waits = f"no part is broken; {behind.group} is {behind.records:,} records of {behind.topic} behind"
                    return [Finding(NAME, True, waits)]
                missing &= without_issue(client)
            return [damage_finding(broken, len(missing))]
        finally:
            client.close()
    except (BadSetting, ClickHouseError, KafkaError):
        return []


def _broken_at(url: str) -> list[BrokenPart]:
    client = open_client(url)
    try:
        return broken_parts(client)
    finally:
        client.close()


def damage_finding(broken: Sequence[BrokenPart], lost_issues: int) -> Finding:
    """The finding for broken parts and fingerprints without an issue."""
    if broken:
        names = ", ".join(f"{part.table} {part.name}" for part in broken[:_NAMED])
        more = f" and {len(broken) - _NAMED} more" if len(broken) > _NAMED else ""
        removals = "; ".join(part.removal for part in broken[:_NAMED])
        detail = f"ClickHouse detached broken parts, as after a full disk; their rows may be missing: {names}{more}"
        return Finding(NAME, False, detail, f"{REPAIR}; once nothing differs, remove them: {removals}")
    if lost_issues:
        return Finding(NAME, False, f"{lost_issues:,} fingerprints have events and no issue", REPAIR)
    return Finding(NAME, True, "no part is broken, and every event has its issue")
