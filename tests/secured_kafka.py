"""A real broker with TLS, SASL and ACLs: it accepts known users, each with the granted rights only."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int8, Int16, Int32, Schema, String
from msgspec import Struct
from msgspec.structs import replace

from broker.client import open_admin
from broker.rights import RequiredRights, rights_of
from local.kafka.command_line import format_data
from local.kafka.config import properties
from local.kafka.downloads import kafka_jars
from local.kafka.java import find_java
from local.kafka.local_kafka import LocalKafka
from local.ports import free_port
from schemas.environment import load
from schemas.settings import KafkaSettings
from tests.certificates import certificate, client_certificate

TOPIC, GROUP, CLUSTER = 2, 3, 4
READ, WRITE, CREATE, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS = 3, 4, 5, 6, 8, 10, 11
KINDS = {"topic": TOPIC, "group": GROUP}
OPERATIONS = {
    "Read": READ,
    "Write": WRITE,
    "Create": CREATE,
    "Delete": DELETE,
    "Describe": DESCRIBE,
    "DescribeConfigs": DESCRIBE_CONFIGS,
    "AlterConfigs": ALTER_CONFIGS,
}
_LITERAL, _PREFIXED, _ALLOW = 3, 4, 3
SCRAM = "SCRAM-SHA-512"
_LOGIN = "org.apache.kafka.common.security.{} required"


class Acl(Struct, frozen=True):
    """`user` may do `operation` on the resource `name`, or on all whose names begin with it."""

    user: str
    kind: int
    name: str
    operation: int
    prefixed: bool = False


def acls(user: str, need: RequiredRights) -> Iterator[Acl]:
    """The documented rights of a process."""
    for right in rights_of(need, KafkaSettings()):
        yield Acl(user, KINDS[right.kind], right.name, OPERATIONS[right.operation])


_ERROR = (("error_code", Int16), ("error_message", String("utf-8")))
_BINDING = (
    ("resource_type", Int8),
    ("resource_name", String("utf-8")),
    ("pattern_type", Int8),
    ("principal", String("utf-8")),
    ("host", String("utf-8")),
    ("operation", Int8),
    ("permission_type", Int8),
)


class _Created(Response):  # type: ignore[misc]
    API_KEY = 30
    API_VERSION = 1
    SCHEMA = Schema(("throttle_time_ms", Int32), ("results", Array(*_ERROR)))


class _CreateAcls(RequestStruct):  # type: ignore[misc]
    API_KEY = 30
    API_VERSION = 1
    RESPONSE_TYPE = _Created
    SCHEMA = Schema(("bindings", Array(*_BINDING)))


class CreateAcls(Request[_CreateAcls]):  # type: ignore[misc]
    """Kafka's CreateAcls, which aiokafka lacks."""

    API_KEY = 30

    def __init__(self, acls: Sequence[Acl]) -> None:
        self._acls = acls

    def build(self, request_struct_class: type[_CreateAcls]) -> _CreateAcls:
        """The request of this version."""
        return request_struct_class(bindings(self._acls))


def bindings(acls: Sequence[Acl]) -> list[tuple[int, str, int, str, str, int, int]]:
    """Rights in Kafka's form; as filters they match only themselves."""
    return [
        (a.kind, a.name, _PREFIXED if a.prefixed else _LITERAL, f"User:{a.user}", "*", a.operation, _ALLOW)
        for a in acls
    ]


class _Deleted(Response):  # type: ignore[misc]
    API_KEY = 31
    API_VERSION = 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("results", Array(*_ERROR, ("matching", Array(*_ERROR, *_BINDING)))),
    )


class _DeleteAcls(RequestStruct):  # type: ignore[misc]
    API_KEY = 31
    API_VERSION = 1
    RESPONSE_TYPE = _Deleted
    SCHEMA = _CreateAcls.SCHEMA


class DeleteAcls(Request[_DeleteAcls]):  # type: ignore[misc]
    """Kafka's DeleteAcls, which aiokafka lacks."""

    API_KEY = 31

    def __init__(self, acls: Sequence[Acl]) -> None:
        self._acls = acls

    def build(self, request_struct_class: type[_DeleteAcls]) -> _DeleteAcls:
        """The request of this version."""
        return request_struct_class(bindings(self._acls))


def secured(
    ports: Mapping[str, int], address: str, certified: str, authority: Path, users: Sequence[str]
) -> dict[str, str]:
    """The settings of a broker with the listeners of `SecuredKafka`."""
    listeners = f"PLAINTEXT://127.0.0.1:{ports['broker']},SASL_SSL://{address},CERTIFIED://{certified}"
    login = "listener.name.sasl_ssl.{}.sasl.jaas.config"
    known = " ".join([f'user_{user}="{user}-secret"' for user in users])
    return {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{ports['controller']}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CERTIFIED:SSL,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": f"{SCRAM},PLAIN,OAUTHBEARER",
        login.format("scram-sha-512"): f"{_LOGIN.format('scram.ScramLoginModule')};",
        login.format("plain"): f"{_LOGIN.format('plain.PlainLoginModule')} {known};",
        login.format("oauthbearer"): f"{_LOGIN.format('oauthbearer.OAuthBearerLoginModule')};",
        "listener.name.certified.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }


def scram_of(users: Sequence[str]) -> list[str]:
    """Arguments with which a data directory knows the users: aiokafka can't create them."""
    known = [f"{SCRAM}=[name={user},password={user}-secret]" for user in users]
    return [argument for user in known for argument in ("--add-scram", user)]


class SecuredKafka(LocalKafka):
    """A broker with three listeners, two of which obey ACLs.

    `bootstrap` is for administrators. `secured` requires TLS and SASL, and `certified` a client's
    certificate; these two obey ACLs. The password of each user is its name and `-secret`; `authority` is the
    file of the CA. Tokens need no signature (RFC 7515, appendix A.5).
    """

    def __init__(self, directory: Path, cache: Path, users: Sequence[str]) -> None:
        super().__init__(directory, cache)
        self.secured, self.certified = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        self.authority = certificate(directory.resolve())
        self._users = users
        self.overrides |= secured(self._ports, self.secured, self.certified, self.authority, users)

    def prepare(self) -> list[str]:
        """Format the data directory with our users: aiokafka can't create them."""
        config, data = self.directory / "server.properties", self.directory / "data"
        config.write_text(properties(self._ports, data, self.overrides))
        format_data(
            find_java(), kafka_jars(self.cache), config, data, ["--standalone", *scram_of(self._users)]
        )
        return super().prepare()

    def environ(self, user: str) -> dict[str, str]:
        """The variables with which `user` connects."""
        return {
            "SVC_KAFKA_BOOTSTRAP": self.secured,
            "SVC_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "SVC_KAFKA_CA_FILE": str(self.authority),
            "SVC_KAFKA_SASL_MECHANISM": SCRAM,
            "SVC_KAFKA_USERNAME": user,
            "SVC_KAFKA_PASSWORD": f"{user}-secret",
        }

    def certified_environ(self, user: str) -> dict[str, str]:
        """The variables with which `user` connects by a certificate."""
        return {
            "SVC_KAFKA_BOOTSTRAP": self.certified,
            "SVC_KAFKA_SECURITY_PROTOCOL": "SSL",
            "SVC_KAFKA_CA_FILE": str(self.authority),
            "SVC_KAFKA_CERTIFICATE_FILE": str(client_certificate(self.authority, user)),
        }

    def settings(self, user: str, **more: Any) -> KafkaSettings:
        """The same as settings."""
        return replace(load(KafkaSettings, self.environ(user)), **more)

    async def allow(self, *acls: Acl) -> None:
        """Add the rights."""
        await self._administer(CreateAcls(acls))

    async def forbid(self, *acls: Acl) -> None:
        """Take rights back that were added."""
        matching = await self._administer(DeleteAcls(acls))
        assert all(len(result[2]) == 1 for result in matching), matching

    async def _administer(self, request: CreateAcls | DeleteAcls) -> list[Any]:
        async with open_admin(KafkaSettings(kafka_bootstrap=self.bootstrap)) as admin:
            results: list[Any] = (await admin._send_to_controller(request)).results
        assert [result for result in results if result[0]] == []
        return results
