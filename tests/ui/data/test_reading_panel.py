"""What is said of large files while they are read, and until when that can be cancelled."""

from types import SimpleNamespace

import pytest

from rankdash.intake.reading import Progress
from rankdash.ui.data import reading_panel


@pytest.mark.parametrize(
    ("progress", "said"),
    [
        (Progress(), ["Step 1 of 4: reading rows", "50 s so far"]),
        (Progress(rows=1), ["Step 1 of 4: reading rows", "1 row read", "50 s so far"]),
        (
            Progress("reading", 2, 30.0),
            [
                "Step 1 of 4: reading rows",
                "2 rows read",
                "50 s so far",
                "at most 30 s left for this step",
            ],
        ),
        (
            Progress("joining", 9),
            [
                "Step 2 of 4: joining queries, documents and labels",
                "9 rows read",
                "50 s so far",
            ],
        ),
        (Progress("checking", 0, 0.0), ["Step 3 of 4: checking", "50 s so far"]),
        (Progress("storing"), ["Step 4 of 4: storing", "50 s so far"]),
    ],
)
def test_the_step_the_rows_and_the_time_are_said(progress, said):
    assert reading_panel._words(progress, 50.0) == said


@pytest.mark.parametrize(
    ("step", "running", "disabled"),
    [("reading", True, False), ("checking", True, False), ("storing", True, True),
     ("storing", False, True)],
)  # fmt: skip
def test_what_is_stored_is_cancelled_no_more_and_the_end_draws_the_page(
    paper, step, running, disabled
):
    drawn = paper(reading_panel)
    stop = object()
    reading = SimpleNamespace(running=running, progress=Progress(step), seconds=1.0, cancel=stop)
    reading_panel.draw(reading, ["a.csv", "b*.csv"])
    (button,) = [settings for kind, _first, settings in drawn.drawn if kind == "button"]
    assert (button["disabled"], button["on_click"]) == (disabled, stop)
    assert drawn.of("markdown") == [r"**Reading a\.csv, b\*\.csv**"]
    again = [settings for kind, _first, settings in drawn.drawn if kind == "rerun"]
    assert again == ([] if running else [{"scope": "app"}])
