"""Topics of a test's own on the session's broker, with one project in them."""

from typing import NamedTuple

import pytest

from schemas.projects import Project
from tests.integration.edge.edge_process import write_project
from tests.topics import EDGE_TOPICS, create_topics


class Deployment(NamedTuple):
    """A broker, a prefix, and the stored project."""

    bootstrap: str
    prefix: str
    project: Project


@pytest.fixture
async def deployment(kafka_bootstrap: str, topic_prefix: str) -> Deployment:
    await create_topics(kafka_bootstrap, topic_prefix, 4, EDGE_TOPICS)
    project = await write_project(kafka_bootstrap, topic_prefix)
    return Deployment(kafka_bootstrap, topic_prefix, project)
