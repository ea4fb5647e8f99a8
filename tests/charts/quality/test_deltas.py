"""Sorted changes: worst first, and helped, same and hurt told apart without colour."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from rankdash.charts import style
from rankdash.charts.quality import deltas

INK = style.INKS["light"]
HURT, HELPED, SAME, MEAN = range(4)


def drawn(frame: pd.DataFrame, **options: object):
    return deltas.figure(frame, "NDCG@10", INK, **options).data  # type: ignore[arg-type]


def frame_of(*changes: float) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "query_id": [f"q{place}" for place in range(len(changes))],
            "before": 0.5,
            "after": 0.5 + np.array(changes),
            "delta": changes,
            "state": "paired",
        }
    )


def test_queries_run_from_the_worst_to_the_best(pairs: Callable[[int], pd.DataFrame]):
    frame = pairs(60)
    traces = drawn(frame)
    marks = sorted((x, y) for trace in traces[:MEAN] for x, y in zip(trace.x, trace.y, strict=True))
    assert [y for _, y in marks] == sorted(frame["delta"].dropna())
    assert [x for x, _ in marks] == list(range(1, 59))


def test_each_mark_knows_its_query():
    traces = drawn(frame_of(0.3, -0.2, 0.0, 0.1))
    assert [list(point) for point in traces[HURT].customdata] == [["q1", 1]]
    assert [point[0] for point in traces[HELPED].customdata] == ["q3", "q0"]
    assert [point[0] for point in traces[SAME].customdata] == ["q2"]


def test_hurt_and_helped_differ_in_pattern_and_side():
    traces = drawn(frame_of(0.3, -0.2))
    hurt, helped = traces[HURT], traces[HELPED]
    assert hurt.marker.pattern.shape != helped.marker.pattern.shape
    assert max(hurt.y) < 0 < min(helped.y)


def test_a_query_without_change_stays_visible_as_a_dot():
    same = drawn(frame_of(0.0, 0.004, 0.3))[SAME]
    assert same.type == "scatter"
    assert same.marker.size >= 4
    assert len(same.x) == 2


def test_the_legend_counts_and_names_the_tie_band():
    names = [trace.name for trace in drawn(frame_of(0.3, 0.02, -0.2, 0.0), tie_band=0.05)]
    assert names == ["1 hurt", "1 helped", "2 same (±0.05)", "mean +0.030"]


def test_the_mean_line_runs_across_at_the_mean():
    mean = drawn(frame_of(0.3, -0.1))[MEAN]
    assert list(mean.y) == pytest.approx([0.1, 0.1])
    assert (mean.x[0], mean.x[-1]) == (0.5, 2.5)


def test_many_queries_share_bars_of_one_direction_and_none_is_lost(
    pairs: Callable[[int], pd.DataFrame],
):
    frame = pairs(10_000)
    traces = drawn(frame)
    bars = len(traces[HURT].x) + len(traces[HELPED].x)
    assert bars <= deltas.MOST_BARS
    delta = frame["delta"].dropna()
    for trace, expected in (
        (traces[HURT], (delta < -0.005).sum()),
        (traces[HELPED], (delta > 0.005).sum()),
        (traces[SAME], (delta.abs() <= 0.005).sum()),
    ):
        assert sum(point[1] for point in trace.customdata) == expected
    widths = [*traces[HURT].width, *traces[HELPED].width]
    assert sum(widths) == (delta.abs() > 0.005).sum()
    worst = traces[HURT].customdata[0][0]
    assert worst == frame.loc[delta.idxmin(), "query_id"]
    best = traces[HELPED].customdata[-1][0]
    assert best == frame.loc[delta.idxmax(), "query_id"]


def test_a_query_that_was_left_out_is_not_drawn():
    traces = drawn(frame_of(0.3, np.nan))
    assert sum(len(trace.x) for trace in traces[:MEAN]) == 1


def test_nothing_to_compare_draws_empty_axes_and_says_so():
    empty = frame_of(np.nan)
    figure = deltas.figure(empty, "NDCG@10", INK)
    assert sum(len(trace.x) for trace in figure.data) == 0
    assert deltas.alt(empty, "NDCG@10") == "No query can be compared."


def test_the_words_say_what_the_bars_say():
    text = deltas.alt(frame_of(0.3, -0.2, 0.0), "NDCG@10")
    assert text == (
        "Change in NDCG@10 for 3 queries, worst first: 1 hurt (worst −0.200), 1 same, "
        "1 helped (best +0.300). The mean change is +0.033."
    )


def test_the_hover_text_is_the_query_and_its_values():
    traces = drawn(frame_of(0.3), names={"q0": "how do I <return> it?"})
    assert traces[HELPED].hovertext[0] == ("how do I &lt;return&gt; it?<br>0.500 → 0.800 (+0.300)")
