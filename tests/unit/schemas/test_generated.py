"""What is generated from the structs is current."""

import pytest

from schemas import jsonschema


@pytest.mark.parametrize("subject", jsonschema.SUBJECTS)
def test_the_json_schema_file_is_what_the_struct_says(subject: str) -> None:
    assert (jsonschema.FOLDER / f"{subject}.json").read_text() == jsonschema.document(subject)
