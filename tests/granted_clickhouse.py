"""A local ClickHouse whose users have exactly the rights of docs/operate/permissions.md."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from local.clickhouse.local_clickhouse import LocalClickHouse

ROOT = Path(__file__).parents[1]
PASSWORD = "granted"
READER = "<documented_reader><readonly>2</readonly></documented_reader>"
"""The profile of a user who only reads."""
_SUM = hashlib.sha256(PASSWORD.encode()).hexdigest()


def documented() -> str:
    """The section about ClickHouse's users."""
    page = (ROOT / "docs/operate/permissions.md").read_text(encoding="utf-8")
    return page[page.index("## ClickHouse") :]


def grants(user: str) -> list[str]:
    """The documented GRANT statements of a user, without the user."""
    return re.findall(rf"^(GRANT [^;]+) TO {user};$", documented(), re.MULTILINE)


def user_xml(name: str, statements: list[str], *, readonly: bool = False) -> str:
    """A user of `users.xml`."""
    queries = "".join(f"<query>{escape(statement)}</query>" for statement in statements)
    return (
        f"<{name}><password_sha256_hex>{_SUM}</password_sha256_hex><networks><ip>127.0.0.1</ip></networks>"
        f"<profile>{'documented_reader' if readonly else 'default'}</profile><quota>default</quota>"
        f"<grants>{queries}</grants></{name}>"
    )


class GrantedClickHouse(LocalClickHouse):
    """Has the users `operator`, `granted` and `granted_reader` as documented, `granted_processors` who only selects,
    `writes_readonly` with a read-only profile, `lacks`, and `more` users with other GRANT statements.
    """

    def __init__(self, directory: Path, more: Mapping[str, list[str]] | None = None) -> None:
        super().__init__(directory)
        self._more = more or {}

    def prepare(self) -> list[str]:
        """Write the configuration with our users added."""
        command = super().prepare()
        file = self.directory / "users.xml"
        operator, writer, reader = grants("svc_operator"), grants("svc"), grants("svc_reader")
        users = {
            "operator": operator,
            "granted": writer,
            "granted_processors": reader,
            "granted_reader": reader,
            "writes_readonly": operator,
            "lacks": [g.replace(", OPTIMIZE", "") for g in operator if "mutations" not in g],
            **self._more,
        }
        ours = "".join(
            user_xml(name, given, readonly=name in {"granted_reader", "writes_readonly"})
            for name, given in users.items()
        )
        text = file.read_text(encoding="utf-8").replace("</users>", f"{ours}</users>")
        file.write_text(text.replace("</profiles>", f"{READER}</profiles>"), encoding="utf-8")
        return command

    def address(self, user: str) -> str:
        """The URL of one of our users."""
        own = self.url()
        return f"http://{user}:{PASSWORD}@{own.rpartition('@')[2]}"
