"""Exported files contain the computed numbers: per-query tables, TREC files, tables for papers."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

import rankdash
from rankdash.core.base.text import csv_bytes, defused, restored
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions
from rankdash.core.readers import Source, read
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.statistics.comparison import StatisticsSettings
from rankdash.core.study.costs import choices
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, System
from rankdash.core.value.assumptions import Assumptions
from rankdash.core.value.payoff import Amount
from rankdash.features.cost import report as cost_report
from rankdash.features.queries import report_query
from rankdash.features.report import report_exports, report_zip
from rankdash.features.report.report_exports import lacks_texts
from rankdash.kit.html.tables import compact_latex, compact_markdown, qrels_bytes, run_bytes
from tests.approved import table
from tests.study.builders import changed, data_of

HOSTILE = ("=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "＝1", "'=1")
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?")
QUERIES = [f"q{q}" for q in range(12)]


def study_of(
    texts: list[str] | None = None, name: str = "better", conventions: Conventions | None = None
) -> Study:
    """Return twelve queries with the relevant document first in the run, which failed on q3 and
    skipped q4; q5 has no relevant document."""
    docs = [f"d{d}" for d in range(4)]
    first = Ranking.from_lists((q, docs, [4.0, 4.0, 3.0, 3.0]) for q in QUERIES)
    labels = {q: {doc: float(doc == "d3" and q != "q5") for doc in docs} for q in QUERIES}
    columns = {"kind": ["=x", "b"] * 6, "system": "own column"}
    data = data_of(first, labels, docs, dict.fromkeys(docs, "words"), **columns)
    texts = texts or [f"how to return {q}" for q in QUERIES]
    data = changed(data, name="Shop", queries=data.queries.assign(text=texts))
    best = Ranking.from_lists(
        (q, ["d3", "d0", "d1", "d2"], [4.0, 3.0, 2.0, 1.0])
        for q in QUERIES
        if q not in ("q3", "q4")
    )
    run = run_from_ranking("better", data.id, best, "better.trec")
    lost = {"query_id": ["q3", "q4"], "state": ["failed", "skipped"], "reason": ["=no luck", ""]}
    queries = pd.concat([run.queries, pd.DataFrame(lost)], ignore_index=True)
    queries.loc[queries["query_id"] == "q0", "latency_ms"] = 12.5
    run = replace(run, queries=queries)
    systems = {
        FIRST_STAGE: System(FIRST_STAGE, "First stage"),
        run.id: System(run.id, name, load=lambda: run),
    }
    rules = {"conventions": conventions or Conventions()}
    rules |= {"statistics": StatisticsSettings(resamples=500)}
    return Study(data, systems, FIRST_STAGE, (run.id,), **rules)


@pytest.fixture(scope="module")
def study() -> Study:
    return study_of()


SHOWN = ["query_id", "role", "state", "failure", "reason", "latency_ms", "text", "segment.kind"]
SHOWN += ["ndcg@10", "ndcg@10.delta", "ndcg@10.outcome", "judged@10"]


def lacking(study: Study, **conventions: str) -> Study:
    """Return the study with a run that lacks the query q0."""
    (challenger,) = study.challengers
    run = study.run(challenger)
    lacks = replace(run, ranking=run.ranking.without(["q0"]))
    systems = {**study.systems, challenger: System(challenger, run.name, load=lambda: lacks)}
    return replace(study, systems=systems, conventions=Conventions(**conventions))


def test_queries_that_failed_or_are_missing_are_told_from_a_zero(study, approved):
    """A query that a ranking lacks is a zero and not a failure; a failure is never a zero."""
    turned = replace(study, baseline=study.challengers[0], challengers=(study.baseline,))
    tables = {
        "failed, not run, nothing relevant": report_exports.query_frame(study)[SHOWN],
        "q0 is missing": report_exports.query_frame(lacking(study))[SHOWN][:2],
        "q0 is missing and skipped": report_exports.query_frame(lacking(study, missing="skip"))[
            SHOWN
        ][:2],
        "no texts": report_exports.query_frame(study_of([None] * len(QUERIES)))[SHOWN][:2],
        "a change within the tie band": report_exports.query_frame(
            replace(study, statistics=replace(study.statistics, tie_band=0.7))
        )[SHOWN][:2],
    }
    said = {
        name: each.round(4).to_csv(index=False, header=False, sep="|").strip()
        for name, each in tables.items()
    }
    for name, each in (("better", study), ("turned", turned)):
        for write in (compact_markdown, compact_latex):
            said[f"{name}, {write.__name__}"] = "".join(write(each.comparison, each.names))
    approved("exports/queries", table({"columns": " | ".join(SHOWN)} | said))
    page = report_query.html(lacking(study), *study.challengers, "q0").decode()
    assert "not ranked" in page and "better does not rank this query." in page
    assert "no result" not in page


FIGURES = ["cost_per_thousand", "cost_per_month", "value_per_month", "net_per_month", "roi"]
FIGURES += ["payback_months", "break_even_elasticity", "break_even_searches"]
FIGURES += ["break_even_price", "break_even_worth"]


def test_a_row_for_each_figure_and_assumption_and_nothing_that_a_spreadsheet_would_run(approved):
    usual = choices(study_of(name="=name"))[1]
    came = {name: Amount(n, n - 0.5, n + 0.5) for n, name in enumerate(FIGURES, start=1)}
    # Pays off at once, at the lower end in any case, at the upper one never.
    came["payback_months"] = Amount(-0.0, "always", "never")
    came["break_even_price"] = Amount(reason="no_gain")
    came["roi"] = Amount(None, "loses", "tenfold", "loses")
    choice = replace(usual, outcome=replace(usual.outcome, **came))
    choice = replace(choice, bill=None, valued=False, example_values=True)
    names = {"data": "+data", "metric": "NDCG@10", "hit": "-hit", "currency": "USD"}
    content = cost_report.as_csv([choice], Assumptions(), **names)
    said = content.decode("utf-8-sig").replace("\r\n", "\n")
    approved("exports/costs", said)
    assert not re.search(r"(?m)^[=+@-]|,[=+@-](?![\d.])", said)


def test_every_format_has_the_documented_columns_and_the_same_numbers(study):
    documented = list(report_exports.meanings(study))
    frame = report_exports.query_frame(study)
    assert set(frame.columns) == set(documented)
    assert {"segment.kind", "segment.system", "judged@10.delta"} <= set(documented)
    # judged@10 is not a metric of quality, so queries have no outcome by it.
    assert "judged@10.outcome" not in documented
    told = json.loads(report_exports.queries_json(study))
    assert told["columns"] == report_exports.meanings(study)
    parquet = pd.read_parquet(io.BytesIO(report_exports.queries_parquet(study)))
    sheet = pd.read_csv(io.BytesIO(report_exports.queries_csv(study)), encoding="utf-8-sig")
    # A missing value is empty, and never a zero.
    [lost] = sheet.index[(sheet["query_id"] == "q3") & (sheet["role"] == "challenger")]
    assert pd.isna(sheet["ndcg@10"][lost]) and sheet["failure"][lost] == "'=no luck"
    assert told["rows"][lost]["ndcg@10"] is told["rows"][lost]["latency_ms"] is None
    for read_back in (parquet, sheet, pd.DataFrame(told["rows"])):
        assert list(read_back.columns) == list(frame.columns)
        for spec in study.specs:
            for column in (spec, f"{spec}.delta"):
                np.testing.assert_array_equal(
                    read_back[column].to_numpy(dtype=float), frame[column]
                )
    assert (parquet["segment.kind"] == frame["segment.kind"]).all()


def test_texts_of_both_queries_and_documents_are_needed_to_train_with(study):
    data = study.dataset
    silent = [data.queries.assign(text=""), data.documents.assign(text="")]
    for tables in ({"queries": silent[0]}, {"documents": silent[1]}):
        of = replace(study, dataset=changed(data, **tables))
        assert lacks_texts(of) and not lacks_texts(study)


def cells_of(content: bytes) -> list[str]:
    return [cell for line in csv.reader(io.StringIO(content.decode("utf-8-sig"))) for cell in line]


def test_no_text_from_the_data_runs_in_a_spreadsheet():
    hostile = study_of([HOSTILE[at % len(HOSTILE)] for at in range(12)], name="=name")
    for content in (report_exports.queries_csv(hostile), report_zip.comparison_csv(hostile)):
        texts = [cell for cell in cells_of(content) if not NUMBER.fullmatch(cell)]
        assert not [cell for cell in texts if cell.startswith(tuple("=+-@\t\r＝"))]
        assert "'=name" in texts
    # A number is not changed: the deltas of a worse system are below 0.
    for text in HOSTILE:
        worse = pd.DataFrame({text: [-0.25, 1.5], "ok": [text, "plain"]})
        head, first, second = csv_bytes(worse).decode("utf-8-sig").split("\r\n")[:3]
        assert (first.partition(",")[0], second) == ("-0.25", "1.5,plain")
        assert cells_of(csv_bytes(worse))[0] == f"'{text}" and head.lstrip('"').startswith("'")
    twice = pd.DataFrame([["=1", "=2"]], columns=["a", "a"])
    assert cells_of(csv_bytes(twice))[2:] == ["'=1", "'=2"]


def test_csv_is_written_only_where_its_cells_are_defused():
    """A new function that writes CSV must be added here."""
    package = Path(rankdash.__file__).parent
    writes = re.compile(r"to_csv\(|csv\.writer\(|DictWriter\(")
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if writes.search(path.read_text())
    }
    assert found == {
        "core/base/text.py",
        "features/cost/report.py",
        "features/report/report_formats.py",
        "kit/commands/output.py",
    }
    for each in found:
        assert "defused" in (package / each).read_text()


@given(st.text(st.sampled_from("'=+-@7.e \tx"), max_size=6))
def test_what_was_defused_can_be_taken_back_and_a_number_stays_one(text):
    cell = defused(text)
    assert restored(cell) == text
    assert NUMBER.fullmatch(cell) or not cell.startswith(tuple("=+-@\t"))
    if NUMBER.fullmatch(text):
        assert cell == text


# A file that begins with a bracket is read as JSON.
IDS = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1, max_size=6
).filter(lambda text: text[0] not in "{[")


@st.composite
def lists(draw):
    """Draw rankings with and without ties, and labels for some of the ranked documents."""
    ranked, labels = [], []
    for query in draw(st.lists(IDS, min_size=1, max_size=4, unique=True)):
        docs = draw(st.lists(IDS, min_size=1, max_size=8, unique=True))
        numbers = st.lists(st.integers(0, 3), min_size=len(docs), max_size=len(docs))
        scores, grades = draw(numbers.map(lambda each: [n / 4 - 0.5 for n in each])), draw(numbers)
        ranked.append((query, docs, sorted(scores, reverse=True)))
        labels += [(query, doc, float(grade)) for doc, grade in zip(docs, grades, strict=True)]
    return Ranking.from_lists(ranked), pd.DataFrame(labels, columns=["query_id", "doc_id", "label"])


@given(lists())
@settings(max_examples=30)
def test_a_run_and_labels_read_back_are_the_same(made):
    ranking, labels = made
    content = run_bytes(ranking, "my model")
    parsed = read([Source("x.run", content), Source("x.qrels", qrels_bytes(labels))])
    for query in ranking.query_ids:
        assert parsed.candidates.documents_of(query)[0] == ranking.documents_of(query)[0]
    assert list(parsed.candidates.query_ids) == list(ranking.query_ids)
    again = parsed.qrels[["query_id", "doc_id", "label"]]
    key = ["query_id", "doc_id"]
    pd.testing.assert_frame_equal(
        again.sort_values(key).reset_index(drop=True),
        labels.sort_values(key).reset_index(drop=True),
        check_dtype=False,
    )


TREC_NAMES = {"ndcg@10": "ndcg_cut_10", "recall@10": "recall_10", "precision@10": "P_10"}


@pytest.mark.parametrize("ties", ["as_ranked", "trec"])
def test_trec_eval_finds_in_the_files_the_numbers_of_the_table(ties):
    """Scores of the first stage are tied in pairs, so that the order of the file decides."""
    compared = study_of(conventions=Conventions(ties=ties))
    frame = report_exports.query_frame(compared)
    labelled, *ranked = (part.make().decode() for part in report_zip.trec_files(compared))
    for system, file in zip(compared.chosen, ranked, strict=True):
        lines = file.splitlines()
        run: dict[str, dict[str, float]] = {}
        for query, _q0, doc, _rank, score, _tag in map(str.split, lines):
            run.setdefault(query, {})[doc] = float(score)
        labels: dict[str, dict[str, int]] = {}
        for line in labelled.splitlines():
            query, _zero, doc, label = line.split()
            labels.setdefault(query, {})[doc] = int(label)
        asked = {"ndcg_cut.10", "recall.10", "P.10"}
        referee = pytrec_eval.RelevanceEvaluator(labels, asked).evaluate(run)
        own = frame[frame["system_id"] == system].set_index("query_id")
        scored = own.index[own["state"] == "scored"]
        assert len(scored) >= 9
        # Failed and skipped queries are not in the file, so trec_eval counts no zero for them.
        assert ("q3" in referee) == (system == FIRST_STAGE)
        for query in scored:
            for spec, name in TREC_NAMES.items():
                assert own.loc[query, spec] == pytest.approx(referee[query][name], abs=1e-9)
