"""Overview without its widgets: reasons, kinds of queries, profiles and what is excluded."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest

from rankdash.ui.overview import overview_causes, overview_charts, targets_view
from rankdash.ui.state import address
from rankdash.value.targets import Limit, Profile, Target


@pytest.mark.parametrize(("rows", "reason"), [([], None), ([1], "idle"), ([0, 1], "rescued"),
                                              ([2], None)])  # fmt: skip
def test_the_row_of_a_reason_that_is_selected_opens_its_queries(monkeypatch, rows, reason):
    table = pd.DataFrame(
        {"queries": [3, 5], "mean": [0.2, 0.0], "adds": [0.1, 0.0]}, index=["rescued", "idle"]
    )
    study = SimpleNamespace(
        reason_counts=lambda _system: table, spec="ndcg@10",
        comparison=SimpleNamespace(left_out=lambda *_a: {}),
    )  # fmt: skip
    event = {"selection": {"rows": rows}}
    shown = {}
    here = SimpleNamespace(
        subheader=lambda *_a, **_k: None, caption=lambda text: shown.update(caption=text),
        dataframe=lambda styled, **more: shown.update(more, table=styled.data) or event,
        column_config=overview_causes.st.column_config,
    )  # fmt: skip
    monkeypatch.setattr(overview_causes, "st", here)
    assert overview_causes.reasons(study, "run") == reason
    assert shown["table"]["reason"].tolist() == ["relevant moved up", "no effect"]
    assert shown["alt"] == "How many of 8 queries each reason explains"
    assert shown["caption"] == "Choose a row to see its queries."


def test_a_metric_that_no_document_splits_has_no_reasons(paper):
    drawn = paper(overview_causes)
    study = SimpleNamespace(
        reason_counts=lambda _system: None, measure=SimpleNamespace(title="MRR@10")
    )
    assert overview_causes.reasons(study, "run") is None
    assert drawn.of("caption") == [
        "MRR@10 cannot be split by document, so its changes have no reasons."
    ]


@pytest.mark.parametrize(
    ("own", "drawn_groups", "corrected", "said"),
    [
        (None, 3, False, 0),
        ("topic", 3, False, 0),
        ("topic", 2, True, 1),
        # A column of one's own may have the name of a derived one.
        (next(iter(overview_causes.figures.DERIVED)), 3, False, 0),
    ],
)
def test_kinds_of_queries_say_what_they_are_and_how_many_are_tested(
    paper, session, monkeypatch, own, drawn_groups, corrected, said
):
    figures = overview_causes.figures
    column = own or next(iter(figures.DERIVED))
    table = pd.DataFrame({"value": list("abc"), "n": 5, "delta": 0.1, "low": 0.0, "high": 0.2,
                          "p": [0.1, 0.2, math.nan], "p_corrected": 0.3})  # fmt: skip
    monkeypatch.setattr(overview_causes.pickers, "pick_one", lambda *_a, **_k: column)
    monkeypatch.setattr(figures, "group", lambda *_a: table)
    monkeypatch.setattr(figures, "group_chart", lambda *_a: None)
    monkeypatch.setattr(figures, "drawn_groups", lambda found: found.head(drawn_groups))
    monkeypatch.setattr(figures, "groups_corrected", lambda *_a: corrected)
    drawn = paper(overview_causes)
    study = SimpleNamespace(dataset=SimpleNamespace(segments={own: ()}), segments=[column],
                            name=str.upper, baseline="base")  # fmt: skip
    overview_causes.segments(study, "run")
    captions = drawn.of("caption")
    assert captions[0] == "RUN against BASE"
    assert captions[1:-1] == (["1 smaller group is in the table only."] if said else [])
    assert ("p is corrected for 2 groups." in captions[-1]) is corrected
    assert captions[-1].startswith("Chosen after the results") is bool(own)
    [styled] = drawn.of("dataframe")
    assert ("corrected p" in styled.data) is corrected


def test_a_row_without_a_level_is_a_target_without_it():
    for empty in (None, math.nan):
        row = {"metric": "ndcg@10", "minimum": 0.5, "target": 0.7, "excellent": empty}
        found = targets_view._target(row)
        assert (found.minimum, found.target, found.excellent) == (0.5, 0.7, None)


@pytest.mark.parametrize(
    ("measure", "target", "offered"),
    [("mrr@3", 500.0, {"metric": "mrr", "k": "3", "target": "500", "latency_target_ms": "500"}),
     ("map", 500.4, {"metric": "map", "k": None, "target": "500", "latency_target_ms": "500"}),
     ("", 500.0, None), ("mrr@3", None, None)],
)  # fmt: skip
def test_a_profile_offers_its_metric_and_its_latency(session, paper, measure, target, offered):
    limits = () if target is None else (Limit("p95_ms", target),)
    profile = Profile("FAQ", (Target("mrr@3", target=0.7),), limits, measure)
    drawn = paper(targets_view)
    address.choose("k", "5")
    address.choose("target", "500")
    targets_view._offer(SimpleNamespace(), profile, drawn)
    if offered is None:
        assert drawn.drawn == []
        return
    [(_kind, _label, settings)] = drawn.drawn
    assert settings["disabled"] is False
    settings["on_click"]()
    assert {name: address.one(name) for name in offered} == offered
    targets_view._offer(SimpleNamespace(), profile, drawn)
    assert drawn.drawn[1][2]["disabled"] is True


def test_the_excluded_queries_of_each_system_stand_beside_it():
    counts = {"base": {"queries": 16, "failed": 0}, "run": {"queries": 16, "failed": 1}}
    study = SimpleNamespace(
        chosen=("base", "run"), name=str.upper,
        evaluate=lambda system, _specs: SimpleNamespace(counts=counts[system]),
    )  # fmt: skip
    table = overview_charts._left_out(study, ["ndcg@10"])
    assert table["system"].tolist() == ["BASE", "RUN"]
    assert table["failed"].tolist() == [0, 1]
    assert table["not run"].tolist() == [0, 0]
