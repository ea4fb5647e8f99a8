"""Changed files are read or refused with the file and the reason, whatever was changed."""

import pytest

from rankdash.errors import DataError
from rankdash.i18n import error_text
from rankdash.loading import examine
from tests.fuzz.mutated import FORMATS, mutated, sources, whole

FILES = 200


@pytest.mark.parametrize("name", FORMATS)
def test_two_hundred_changed_files_of_a_format(name):
    assert examine(sources(name, whole(name))).dataset.documents is not None
    refused = 0
    for seed in range(FILES):
        try:
            examine(sources(name, mutated(name, seed)))
        except DataError as error:
            refused += 1
            assert error.file.startswith(("changed", "labels")), (seed, error)
            error_text(error).encode()
    assert refused > 0
