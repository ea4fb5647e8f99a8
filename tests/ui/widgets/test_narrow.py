"""Styles for which the theme has no setting."""

import pytest

from rankdash.core.base.i18n import speaking
from rankdash.kit.widgets import narrow


@pytest.mark.parametrize(("language", "word"), [("en", None), ("zh", "上传")])
def test_the_button_for_files_is_in_the_language_of_the_reader(paper, language, word):
    drawn = paper(narrow)
    with speaking(language):
        narrow.style()
    buttons = [each for each in drawn.of("html") if "stFileUploaderDropzone" in each]
    assert [f'content: "{word}"' in each for each in buttons] == ([True] if word else [])
