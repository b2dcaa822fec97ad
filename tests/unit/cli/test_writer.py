import pytest
from click.testing import CliRunner

from cli.writer import command

WHOLE = {"SVC_KAFKA_BOOTSTRAP": "127.0.0.1:1", "SVC_CLICKHOUSE_URL": "http://u:p@127.0.0.1:1/svc"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SVC_KAFKA_BOOTSTRAP", ""),
        ("SVC_CLICKHOUSE_URL", ""),
        ("SVC_CLICKHOUSE_URL", "127.0.0.1:8123"),
        ("SVC_CLICKHOUSE_URL", "http://u:p@127.0.0.1:8123/"),
        ("SVC_CLICKHOUSE_URL", "http://u:p@127.0.0.1:x/svc"),
        ("SVC_WRITER_BLOCK_ROWS", "0"),
        ("SVC_WRITER_WAIT_SECONDS", "soon"),
        ("SVC_UNHEARD_OF", "1"),
    ],
)
def test_a_bad_setting_is_one_line_with_its_name_and_status_2(name: str, value: str) -> None:
    result = CliRunner().invoke(command, [], env=WHOLE | {name: value})
    assert result.exit_code == 2
    assert result.stderr.startswith("svc: SVC_")
    assert name in result.stderr
    assert result.stderr.count("\n") == 1
