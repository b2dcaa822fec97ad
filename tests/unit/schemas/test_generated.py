"""What is generated from the structs is current."""

import pytest

from schemas.generate import json_schema


@pytest.mark.parametrize("subject", json_schema.SUBJECTS)
def test_the_json_schema_file_is_what_the_struct_says(subject: str) -> None:
    assert (json_schema.FOLDER / f"{subject}.json").read_text() == json_schema.document(subject)
