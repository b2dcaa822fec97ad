"""Settings are read once, from the environment (contract, section 1).

`SVC_X` sets the field `x`; `SVC_X_FILE` names an existing file with the value; setting both is an error.
"""

import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar, get_type_hints
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from schemas.addresses import is_address
from schemas.errors import BadSetting
from schemas.service_variables import is_service_variable
from schemas.settings import ALL, ClickHouseSettings, KafkaSettings
from schemas.topics import check_distinct

PREFIX: Final = "SVC_"
S = TypeVar("S", bound=Struct)


def variables() -> dict[str, msgspec.inspect.Field]:
    """All variables by name, in the order of `ALL`."""
    found: dict[str, msgspec.inspect.Field] = {}
    for struct in ALL:
        info = msgspec.inspect.type_info(struct)
        assert isinstance(info, msgspec.inspect.StructType)
        for field in info.fields:
            found.setdefault(PREFIX + field.name.upper(), field)
    return found


def load(struct: type[S], environ: Mapping[str, str]) -> S:
    """Settings of one process from its environment.

    Raises BadSetting, naming the variable: one with our prefix is unknown, a required one is missing, or a
    value is bad.
    Variables that Kubernetes sets for services are ignored.
    """
    given = dict(_given(environ))
    known = variables()
    for name in given:
        if name not in known:
            raise BadSetting(f"{name} is not a setting of this service")
    values = {}
    for field in struct.__struct_fields__:
        name = PREFIX + field.upper()
        if name in given:
            values[field] = _convert(struct, field, name, given[name])
    try:
        settings = struct(**values)
    except TypeError:
        missing = next(f for f in _required(struct) if f not in values)
        raise BadSetting(f"{PREFIX}{missing.upper()} is required") from None
    if isinstance(settings, KafkaSettings):
        check_kafka(settings)
        check_distinct(settings.topic_prefix, settings.topic_overrides)
    if isinstance(settings, ClickHouseSettings):
        settings = _with_shards(settings)
        if settings.clickhouse_ca_file:
            settings = _with_ca(settings)
    return settings


def _with_shards(settings: S) -> S:
    """The settings with the first of several servers as the one address. Raises BadSetting."""
    assert isinstance(settings, ClickHouseSettings)
    if not settings.clickhouse_shards:
        return settings
    if settings.clickhouse_url:
        raise BadSetting("SVC_CLICKHOUSE_URL and SVC_CLICKHOUSE_SHARDS are both set: unset one of them")
    replicas = settings.replica_urls
    urls = [url for addresses in replicas for url in addresses]
    if len(set(urls)) != len(urls):
        raise BadSetting("SVC_CLICKHOUSE_SHARDS names a server twice")
    if len({urlsplit(url).path.rstrip("/") for url in urls}) != 1:
        raise BadSetting(
            "SVC_CLICKHOUSE_SHARDS names several databases: give it the same name on each server"
        )
    if len(replicas) > 1 and not settings.clickhouse_cluster:
        raise BadSetting(
            "SVC_CLICKHOUSE_CLUSTER is required: the name under which these servers know each other"
        )
    # With the number of replicas in each address, from which every client is made.
    named = ",".join(
        "|".join(_with_query(url, replicas=len(one)) if len(one) > 1 else url for url in one)
        for one in replicas
    )
    return replace(settings, clickhouse_shards=named, clickhouse_url=re.split(r"[,|]", named)[0])


def _with_ca(settings: S) -> S:
    """The settings with the CA file in the addresses, from which every client is made. Raises BadSetting."""
    assert isinstance(settings, ClickHouseSettings)
    file = settings.clickhouse_ca_file
    _check_ca("SVC_CLICKHOUSE_CA_FILE", file)

    def named(url: str) -> str:
        return _with_query(url, ca_file=file) if url else ""

    return replace(
        settings,
        clickhouse_url=named(settings.clickhouse_url),
        clickhouse_reader_url=named(settings.clickhouse_reader_url),
        clickhouse_shards=",".join("|".join(map(named, urls)) for urls in settings.replica_urls)
        if settings.clickhouse_shards
        else "",
    )


def _with_query(url: str, **more: object) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(more)}"


def _given(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The settings in the environment, with the contents of `_FILE` variants; the file replaces an empty variable."""
    known = variables()
    for name, value in environ.items():
        if not name.startswith(PREFIX) or is_service_variable(name, value):
            continue
        if name in known and environ.get(f"{name}_FILE") and f"{name}_FILE" not in known:
            if value:
                raise BadSetting(f"{name} and {name}_FILE are both set: unset one of them")
            continue
        if name.endswith("_FILE") and name not in known:
            try:
                yield name.removesuffix("_FILE"), Path(value).read_text(encoding="utf-8").rstrip("\n")
            except OSError as error:
                raise BadSetting(f"{name}: can't read {value}: {error.strerror}") from None
        else:
            yield name, value


def _required(struct: type[Struct]) -> Iterator[str]:
    info = msgspec.inspect.type_info(struct)
    assert isinstance(info, msgspec.inspect.StructType)
    return (f.name for f in info.fields if f.required)


def _convert(struct: type[Struct], field: str, name: str, text: str) -> object:
    kind = get_type_hints(struct, include_extras=True)[field]
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError as error:
        raise BadSetting(f"{name}: {str(error).split(' - at')[0]}") from None


def check_kafka(settings: KafkaSettings) -> None:
    """Raises BadSetting for settings that no client could use.

    These are a malformed address, an unusable file and a missing address of tokens.
    """
    for address in settings.kafka_bootstrap.split(",") if settings.kafka_bootstrap else ():
        if not is_address(address.strip()):
            raise BadSetting(f"SVC_KAFKA_BOOTSTRAP: {address.strip()!r} is not host:port")
    protocol = settings.kafka_security_protocol
    if protocol.endswith("SSL"):
        if settings.kafka_ca_file:
            _check_ca("SVC_KAFKA_CA_FILE", settings.kafka_ca_file)
        if settings.kafka_certificate_file:
            _check_certificate(settings.kafka_certificate_file, settings.kafka_key_file)
    if protocol.startswith("SASL_") and settings.kafka_sasl_mechanism == "OAUTHBEARER":
        url = urlsplit(settings.kafka_token_url)
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise BadSetting("SVC_KAFKA_TOKEN_URL: OAUTHBEARER needs an http or https address")


def _check_ca(name: str, file: str) -> None:
    try:
        ssl.create_default_context(cafile=file)
    except OSError as error:
        raise BadSetting(f"{name}: can't use {file}: {error.strerror or error}") from None


def _check_certificate(file: str, key: str) -> None:
    try:
        ssl.create_default_context().load_cert_chain(file, key or None)
    except OSError as error:
        named = f"SVC_KAFKA_CERTIFICATE_FILE: can't use {file}" + (f" with {key}" if key else "")
        raise BadSetting(f"{named}: {error.strerror or error}") from None


def is_secret(field: msgspec.inspect.Field) -> bool:
    """Whether the variable's value must never be shown."""
    kind = field.type
    return isinstance(kind, msgspec.inspect.Metadata) and bool((kind.extra or {}).get("secret"))


def description(field: msgspec.inspect.Field) -> str:
    """The description of the variable, one sentence."""
    kind = field.type
    if not isinstance(kind, msgspec.inspect.Metadata):
        return ""
    return str((kind.extra_json_schema or {}).get("description", ""))
