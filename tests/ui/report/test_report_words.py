"""What a section of the report would say, and which logo is kept."""

from types import SimpleNamespace

import pytest

from rankdash.study.systems import Money
from rankdash.ui.report import report_form, report_preview


def study(**changes: object) -> SimpleNamespace:
    usual = {
        "name": str.upper, "challengers": ("a", "b"), "spec": "ndcg@10", "money": None,
        "measure": SimpleNamespace(title="MAP", metric=SimpleNamespace(title="MAP",
                                                                       has_cutoff=False)),
        "dataset": SimpleNamespace(segments={}, queries=[1], documents=[1, 2], qrels=[]),
        "check": None, "has_reasons": True, "labelling": None,
    }  # fmt: skip
    return SimpleNamespace(**(usual | changes))


def test_a_preview_is_empty_where_a_section_would_be(monkeypatch):
    found = {"a": SimpleNamespace(p95=12.0), "b": None}
    monkeypatch.setattr(report_preview.latency, "summary", lambda _study, each: found[each])
    assert report_preview._latency(study()).summary == "A: p95 12 ms"
    found["a"] = SimpleNamespace(p95=None)
    nothing = report_preview._latency(study())
    assert nothing.empty and nothing.page == "run"
    assert report_preview._cutoffs(study()).empty
    ndcg = SimpleNamespace(title="NDCG@10", metric=SimpleNamespace(title="NDCG", has_cutoff=True))
    cutoffs = report_preview._cutoffs(study(measure=ndcg))
    assert (cutoffs.summary, cutoffs.empty) == ("NDCG from k = 1 to 100", False)


@pytest.mark.parametrize(
    ("money", "page"),
    [
        (None, "cost"),
        (Money(), "cost"),
        (Money(given=frozenset({"searches_per_day"})), "cost"),
        (Money(given=frozenset({"value_per_search"})), ""),
    ],
)
def test_cost_that_nobody_set_is_break_even_only(money, page, monkeypatch):
    monkeypatch.setattr(report_preview, "is_known", lambda _study, system: system == "b")
    monkeypatch.setattr(report_preview, "choices", lambda _study: [SimpleNamespace(system="b")])
    monkeypatch.setattr(report_preview, "answer", lambda _choice: "open")
    found = report_preview._money(study(money=money))
    assert found.page == page
    assert found.summary.startswith("Break-even only") is bool(page)
    example = report_preview._money(study(money=Money(example=True)))
    assert example.summary == "With example values, marked as such."


def test_what_does_not_pay_off_at_any_price_is_not_called_break_even(monkeypatch):
    kinds = {"a": "no", "b": "no", "base": "unknown"}
    every = [SimpleNamespace(system=system) for system in kinds]
    monkeypatch.setattr(report_preview, "is_known", lambda *_a: True)
    monkeypatch.setattr(report_preview, "choices", lambda _study: every)
    monkeypatch.setattr(report_preview, "answer", lambda choice: kinds[choice.system])
    found = report_preview._money(study())
    assert (found.summary, found.page) == ("Does not pay off.", "")
    kinds["b"] = "open"
    assert report_preview._money(study()).summary.startswith("Break-even only")


@pytest.mark.parametrize(
    ("warnings", "said"),
    [(None, "1 query · 2 documents · 0 labels"), (0, "1 query · 2 documents · 0 labels"),
     (1, "1 query · 2 documents · 0 labels · 1 warning")],
)  # fmt: skip
def test_the_data_are_counted_with_their_warnings(warnings, said):
    check = None if warnings is None else SimpleNamespace(warnings=[None] * warnings)
    assert report_preview._data(study(check=check)).summary == said
    own = SimpleNamespace(segments={"topic": ()})
    assert report_preview._segments(study(dataset=own)).summary.startswith("topic, and those")
    assert report_preview._segments(study()).summary.startswith("By length")
    assert "reasons only" in report_preview._reasons(study(has_reasons=False)).summary


@pytest.mark.parametrize(
    ("size", "kept_logo", "refused"), [(None, False, False), (8, False, True), (True, True, False)]
)
def test_a_logo_is_kept_where_it_is_a_picture(
    paper, session, monkeypatch, size, kept_logo, refused
):
    drawn = paper(report_form)
    drawn.session_state = session
    given = None if size is None else SimpleNamespace(name="x.png", getvalue=lambda: b"x")
    session[report_form._UPLOAD] = given

    def uri(_content):
        if refused:
            raise report_form.DataError("No picture.")

    monkeypatch.setattr(report_form.logo, "data_uri", uri)
    report_form._take()
    assert (report_form._LOGO in session) is kept_logo
    assert (report_form._REFUSED in session) is refused
