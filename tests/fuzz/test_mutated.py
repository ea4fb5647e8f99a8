"""Changed files are read or refused with the file and the reason, whatever was changed."""

import pytest

from rankdash.errors import DataError
from rankdash.i18n import error_text
from rankdash.loading import examine
from tests.fuzz.independent import silently_wrong
from tests.fuzz.mutated import FORMATS, mutated, sources, whole

FILES = 200


@pytest.mark.parametrize("name", FORMATS)
def test_two_hundred_changed_files_of_a_format(name):
    loaded = examine(sources(name, whole(name)))
    assert loaded.dataset.documents is not None
    assert silently_wrong(name, whole(name), loaded) == ""
    refused = 0
    for seed in range(FILES):
        try:
            loaded = examine(sources(name, mutated(name, seed)))
        except DataError as error:
            refused += 1
            assert error.file.startswith(("changed", "labels")), (seed, error)
            error_text(error).encode()
        else:
            assert silently_wrong(name, mutated(name, seed), loaded) == "", seed
    assert refused > 0
