"""The steps from the baseline's value to the challenger's: they meet, and none leaves the range."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.charts import style
from rankdash.charts.quality import waterfall

INK = style.INKS["light"]
SIDES = ("BM25", "MiniLM")


def documents(parts: list[tuple[float, float]]) -> pd.DataFrame:
    """From what each document adds before and after."""
    frame = pd.DataFrame(
        {
            "doc_id": [f"d{n}" for n in range(len(parts))],
            "rank_before": np.arange(1.0, len(parts) + 1),
            "rank_after": np.arange(len(parts), 0.0, -1),
            "label": [float(n % 3) for n in range(len(parts))],
            "before": [before for before, _ in parts],
            "after": [after for _, after in parts],
        }
    )
    frame["delta"] = frame["after"] - frame["before"]
    return frame.sort_values("delta", key=lambda delta: -delta.abs(), kind="stable")


SHARES = st.lists(st.tuples(st.floats(0, 0.05), st.floats(0, 0.05)), max_size=20)


@given(parts=SHARES)
def test_the_steps_lead_from_one_value_to_the_other_within_the_range(parts):
    frame = documents(parts)
    before, after = math.fsum(frame["before"]), math.fsum(frame["after"])
    steps = waterfall.bars(frame, before)
    values = [before, *(step.end for step in steps)]
    assert values[-1] == pytest.approx(after, abs=1e-11)
    assert [step.start for step in steps] == values[:-1]
    assert min(values) >= -1e-11
    assert max(values) <= max(before, after) + 1e-11
    assert len(steps) <= waterfall.MOST_BARS + 1
    assert sum(step.documents for step in steps) == (frame["delta"].abs() > 1e-12).sum()


def test_what_changed_least_shares_a_bar_and_one_alone_does_not():
    many = documents([(0.0, 0.01 * n) for n in range(1, 15)])
    steps = waterfall.bars(many, 0.0)
    assert [step.doc_id for step in steps] == ["", *(f"d{n}" for n in range(13, 5, -1))]
    assert steps[0].documents == 6
    nine = documents([(0.0, 0.01 * n) for n in range(1, 10)])
    assert all(step.doc_id for step in waterfall.bars(nine, 0.0))


def test_up_and_down_differ_in_more_than_colour():
    figure = waterfall.figure(documents([(0.3, 0.0), (0.0, 0.5)]), 0.3, "NDCG@10", SIDES, INK)
    _, up, down = figure.data[:3]
    assert (up.name, down.name) == ("counts for more", "counts for less")
    assert not up.marker.pattern.shape
    assert down.marker.pattern.shape == "/"
    assert figure.layout.yaxis2.ticktext == ("0.300", "▼ −0.300", "▲ +0.500", "0.500")


def test_a_sum_that_ends_a_hair_below_zero_is_zero():
    frame = documents([(0.1, 0.0), (0.2, 0.0)])
    figure = waterfall.figure(frame, 0.1 + 0.2 - 1e-15, "NDCG@10", SIDES, INK)
    assert figure.layout.yaxis2.ticktext[-1] == "0.000"
    assert "then 0.000" in waterfall.alt(frame, 0.3 - 1e-15, "NDCG@10", SIDES)


def test_a_relevant_document_is_bold_and_every_label_is_written():
    frame = documents([(0.3, 0.0), (0.0, 0.5)])
    frame["label"] = [2.0, 0.5]
    figure = waterfall.figure(frame, 0.3, "NDCG@10", SIDES, INK, names={"d1": "Returns <b>"})
    texts = figure.layout.yaxis.ticktext
    assert "d0<br>1 → 2 · label 0.5" in texts
    assert "<b>Returns &lt;b&gt;</b><br>2 → 1 · label 2" in texts
    assert figure.data[1].customdata == ("d1",)


def test_a_document_that_a_list_lacks_has_a_dash_for_its_rank():
    frame = documents([(0.3, 0.0)]).assign(rank_after=np.nan)
    figure = waterfall.figure(frame, 0.3, "NDCG@10", SIDES, INK)
    assert figure.layout.yaxis.ticktext[1] == "d0<br>1 → – · label 0"


def test_the_words_give_every_step():
    frame = documents([(0.3, 0.0), (0.0, 0.5)])
    assert waterfall.alt(frame, 0.3, "NDCG@10", SIDES, names={"d1": "Returns"}) == (
        "NDCG@10 of one query: 0.300 (BM25), then 0.500 (MiniLM). d0: −0.300, rank 1 → 2 · "
        "label 0. Returns: +0.500, rank 2 → 1 · label 1."
    )
    assert waterfall.alt(frame[:0], 0.3, "NDCG@10", SIDES).endswith("then 0.300 (MiniLM).")
