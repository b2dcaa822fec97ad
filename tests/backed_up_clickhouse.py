"""A ClickHouse server that can be backed up and restored."""

from local.clickhouse.local_clickhouse import LocalClickHouse
from storage.client import open_client


class BackedUpClickHouse(LocalClickHouse):
    """A server whose user may back up and restore."""

    def prepare(self) -> list[str]:
        command = super().prepare()
        config, users = self.directory / "config.xml", self.directory / "users.xml"
        allowed = f"<backups><allowed_path>{self.directory}/backups</allowed_path></backups></clickhouse>"
        config.write_text(config.read_text().replace("</clickhouse>", allowed))
        known = "<query>GRANT SET DEFINER ON analyst_views</query>"
        more = "<query>GRANT BACKUP, DROP DATABASE ON *.*</query><query>GRANT READ, WRITE ON FILE</query>"
        assert known in users.read_text()
        users.write_text(users.read_text().replace(known, known + more))
        return command

    def sql(self, statement: str) -> None:
        """Run a statement of an administrator."""
        assert self._runs(statement)

    def answer(self, sql: str) -> str:
        """The result of a query, as text."""
        client = open_client(self.url())
        try:
            return client.raw_query(sql).decode()
        finally:
            client.close()

    def backup(self, name: str) -> str:
        """A backup by its name, in SQL, in the folder `backups`."""
        return f"File('{self.directory}/backups/{name}')"
