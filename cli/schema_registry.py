"""`svc schemas`: the JSON Schemas of the topics that other teams read, for a schema registry."""

import json
import ssl
import urllib.error
import urllib.request
from base64 import b64encode
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import click

from broker.client import name_of
from cli.console import fail, print_json, settings_of
from cli.groups import NearestGroup
from cli.workspace import Workspace
from schemas.generate.json_schema import PUBLIC, document
from schemas.settings import KafkaSettings
from schemas.topics import Topic

_SECONDS: Final = 10.0
_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_REFUSED: Final = "the registry refuses {subject}: {reason}"


@click.group(cls=NearestGroup)
def schemas() -> None:
    """The JSON Schemas of the topics that other teams read."""


@schemas.command()
@click.argument("registry")
@click.option("--ca-file", help="CA of the registry's certificate, as a PEM file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def register(workspace: Workspace, registry: str, ca_file: str | None, as_json: bool) -> None:
    """Register the schemas at REGISTRY, http(s)://user:password@host:port, as subjects TOPIC-value.

    Idempotent. The registry decides by its own setting whether a version is compatible. Values of the topics are plain JSON,
    without the five bytes in front that clients of a registry may write.
    """
    settings = settings_of(workspace, KafkaSettings)
    named = {topic.title: name_of(settings, topic) for topic in Topic}
    ids = {
        f"{named[title]}-value": _register(registry, ca_file, f"{named[title]}-value", document(title))
        for title in PUBLIC
    }
    if as_json:
        print_json(ids)
        return
    for subject, number in ids.items():
        click.echo(f"{subject}: schema {number}")


def _register(registry: str, ca_file: str | None, subject: str, schema: str) -> int:
    """The id of the registered schema. Ends the program where the registry doesn't take it."""
    parts = urlsplit(registry)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        fail("the registry must be http(s)://user:password@host:port", 2)
    host = parts.netloc.rpartition("@")[2]
    request = urllib.request.Request(  # noqa: S310 - the operator's own address
        f"{parts.scheme}://{host}{parts.path.rstrip('/')}/subjects/{quote(subject, safe='')}/versions",
        data=json.dumps({"schemaType": "JSON", "schema": schema}).encode(),
        headers={"Content-Type": _TYPE, "Accept": _TYPE},
    )
    if parts.username is not None:
        account = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_header("Authorization", "Basic " + b64encode(account.encode()).decode())
    context = ssl.create_default_context(cafile=ca_file) if parts.scheme == "https" else None
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS, context=context) as answer:  # noqa: S310
            found: dict[str, Any] = json.load(answer)
            return int(found["id"])
    except urllib.error.HTTPError as error:
        with error:
            fail(_REFUSED.format(subject=subject, reason=_reason(error)))
    except (OSError, ValueError, KeyError, TypeError) as error:
        fail(f"no answer of a schema registry from {host}: {getattr(error, 'reason', None) or error}")


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {error.code}"
