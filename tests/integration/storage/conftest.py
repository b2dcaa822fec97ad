from pathlib import Path

import pytest

from tests.integration.storage.grouped import Stage


@pytest.fixture
async def stage(
    kafka_bootstrap: str, clickhouse_database_url: str, topic_prefix: str, tmp_path: Path
) -> Stage:
    """Empty topics and tables."""
    return await Stage(kafka_bootstrap, clickhouse_database_url, topic_prefix, tmp_path).prepare()
