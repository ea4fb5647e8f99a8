"""The contrast of text in the theme: at least 4.5 to 1 by the formula of WCAG."""

import tomllib
from pathlib import Path

import pytest

from rankdash.kit.drawing import style

THEME = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())[
    "theme"
]
# The opacity of the titles of the menu and of captions in Streamlit.
CAPTION = 0.6
# The largest difference between two channels of a grey.
MOST_HUE = 0.17


def channels(colour: str) -> list[float]:
    return [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]


def luminance(parts: list[float]) -> float:
    linear = [
        each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(ink: str, ground: str, share: float = 1.0) -> float:
    below = channels(ground)
    drawn = [
        top * share + under * (1 - share) for top, under in zip(channels(ink), below, strict=True)
    ]
    high, low = sorted((luminance(drawn), luminance(below)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_captions_and_what_is_written_on_the_accent_can_be_read(scheme):
    colours = THEME[scheme]
    for ground in ("backgroundColor", "secondaryBackgroundColor"):
        assert contrast(colours["textColor"], colours[ground], CAPTION) >= 4.5
        assert contrast(colours.get("linkColor", colours["primaryColor"]), colours[ground]) >= 4.5
    assert contrast("#FFFFFF", colours["primaryColor"]) >= 4.5
    # Another colour would mean better, worse or a system.
    accent = channels(colours["primaryColor"])
    assert max(accent) - min(accent) <= MOST_HUE
    assert colours["primaryColor"] not in (*style.SYSTEMS, style.FIRST_STAGE, style.WORSE)
