"""What leaves as a file is what was computed: per-query tables, TREC files, tables for papers."""

import csv
import io
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

import rankdash
from rankdash.analysis.statistics.comparison import StatisticsSettings
from rankdash.dataset import Dataset
from rankdash.errors import DataError
from rankdash.metrics import Conventions
from rankdash.ranking.ranking import Ranking, Run
from rankdash.readers import Source, read
from rankdash.reporting.exports import queries_csv, query_file, zip_file
from rankdash.reporting.exports.tables import compact_latex, compact_markdown
from rankdash.reporting.exports.trec import qrels_bytes, run_bytes
from rankdash.reporting.exports.triplet_lines import lacks_texts
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.spreadsheet import csv_bytes, defused, restored
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, System

HOSTILE = ("=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "＝1", "'=1")
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?")
QUERIES = [f"q{q}" for q in range(12)]


def study_of(
    texts: list[str] | None = None, name: str = "better", conventions: Conventions | None = None
) -> Study:
    """Twelve queries, whose relevant document the run puts first; it failed on q3 and was not run
    on q4, and q5 has nothing relevant."""
    texts = texts or [f"how to return {q}" for q in QUERIES]
    rows = [(q, f"d{d}") for q in QUERIES for d in range(4)]
    data = Dataset(
        name="Shop",
        queries=pd.DataFrame(
            {"query_id": QUERIES, "text": texts, "kind": ["=x", "b"] * 6, "system": "own column"}
        ),
        documents=pd.DataFrame(
            {"doc_id": [f"d{d}" for d in range(4)], "title": "", "text": "words"}
        ),
        qrels=pd.DataFrame(
            {
                "query_id": [q for q, _ in rows],
                "doc_id": [d for _, d in rows],
                "label": [float(d == "d3" and q != "q5") for q, d in rows],
            }
        ),
        candidates=Ranking.from_columns(
            [q for q, _ in rows], [d for _, d in rows], [4.0 - int(d[1]) // 2 for _, d in rows]
        ),
    )
    best = [
        (q, ["d3", "d0", "d1", "d2"], [4.0, 3.0, 2.0, 1.0])
        for q in QUERIES
        if q not in ("q3", "q4")
    ]
    run = run_from_ranking("better", data.id, Ranking.from_lists(best), "better.trec")
    template = run.queries.iloc[0].to_dict()
    lost = pd.DataFrame(
        [
            {**template, "query_id": "q3", "state": "failed", "reason": "=no luck"},
            {**template, "query_id": "q4", "state": "skipped", "reason": ""},
        ]
    )
    queries = pd.concat([run.queries, lost], ignore_index=True)
    queries.loc[queries["query_id"] == "q0", "latency_ms"] = 12.5
    fields = {each: getattr(run, each) for each in Run.__dataclass_fields__}
    run = Run(**{**fields, "queries": queries})
    return Study(
        dataset=data,
        systems={
            FIRST_STAGE: System(FIRST_STAGE, "First stage"),
            run.id: System(run.id, name, load=lambda: run),
        },
        baseline=FIRST_STAGE,
        challengers=(run.id,),
        conventions=conventions or Conventions(),
        statistics=StatisticsSettings(resamples=500),
    )


@pytest.fixture(scope="module")
def study() -> Study:
    return study_of()


def row(table: pd.DataFrame, query: str, role: str = "challenger") -> pd.Series:
    found = table[(table["query_id"] == query) & (table["role"] == role)]
    assert len(found) == 1
    return found.iloc[0]


def test_a_table_has_a_row_for_each_query_and_system_with_the_values_of_the_evaluation(study):
    table = queries_csv.frame(study)
    assert list(table["query_id"][:4]) == ["q0", "q0", "q1", "q1"]
    assert list(table["role"][:2]) == ["baseline", "challenger"]
    assert len(table) == 2 * len(QUERIES)
    for system in study.chosen:
        own = table[table["system_id"] == system].set_index("query_id")
        evaluated = study.evaluations[system]
        for spec in study.specs:
            np.testing.assert_array_equal(
                own.loc[evaluated.query_ids, spec], evaluated.column(spec)
            )
            assert own[spec].mean() == pytest.approx(evaluated.mean(spec), nan_ok=True)
    moved = row(table, "q0")
    assert moved["ndcg@10.delta"] == moved["ndcg@10"] - row(table, "q0", "baseline")["ndcg@10"]
    assert (moved["ndcg@10.outcome"], moved["reason"]) == ("helped", "rescued")
    assert moved["latency_ms"] == 12.5
    compared = study.comparison.row(study.challengers[0], "ndcg@10")
    assert (table["ndcg@10.outcome"] == "helped").sum() == compared["helped"]
    assert table["ndcg@10.delta"].mean() == pytest.approx(compared["delta"])


def test_a_query_without_a_text_has_an_empty_one():
    assert set(queries_csv.frame(study_of([None] * len(QUERIES)))["text"]) == {""}


def test_a_query_that_a_ranking_lacks_is_a_zero_and_no_failure(study):
    (challenger,) = study.challengers
    run = study.run(challenger)
    lacking = replace(run, ranking=run.ranking.without(["q0"]))
    systems = {**study.systems, challenger: System(challenger, run.name, load=lambda: lacking)}
    lacks = replace(study, systems=systems)
    missing = row(queries_csv.frame(lacks), "q0")
    before = row(queries_csv.frame(lacks), "q0", "baseline")["ndcg@10"]
    assert (missing["state"], missing["reason"]) == ("missing", "missing")
    assert pd.isna(missing["failure"])
    assert (missing["ndcg@10"], missing["ndcg@10.delta"]) == (0, -before)
    assert missing["ndcg@10.outcome"] == "hurt"
    page = query_file.html(lacks, challenger, "q0").decode()
    assert "not ranked" in page
    assert "better does not rank it." in page
    assert "no result" not in page
    skipping = replace(lacks, conventions=Conventions(missing="skip"))
    out = row(queries_csv.frame(skipping), "q0")
    assert (out["state"], out["reason"]) == ("missing", "missing")
    assert out["ndcg@10.outcome"] == "missing"
    assert math.isnan(out["ndcg@10"])


def test_a_failure_is_never_a_zero(study):
    table = queries_csv.frame(study)
    failed, skipped, nothing = (row(table, query) for query in ("q3", "q4", "q5"))
    assert (failed["state"], failed["failure"]) == ("failed", "=no luck")
    assert (skipped["state"], nothing["state"]) == ("skipped", "no_relevant")
    for each in (failed, skipped, nothing):
        assert math.isnan(each["ndcg@10"])
        assert math.isnan(each["ndcg@10.delta"])
        assert each["ndcg@10.outcome"] == each["state"]
    assert row(table, "q3", "baseline")["state"] == "scored"
    rows = json.loads(queries_csv.as_json(study))["rows"]
    [said] = [each for each in rows if each["query_id"] == "q3" and each["role"] == "challenger"]
    assert said["ndcg@10"] is None
    assert said["ndcg@10.delta"] is None
    assert said["latency_ms"] is None
    lines = list(csv.DictReader(io.StringIO(queries_csv.as_csv(study).decode("utf-8-sig"))))
    [said] = [each for each in lines if each["query_id"] == "q3" and each["role"] == "challenger"]
    assert said["ndcg@10"] == ""
    assert said["failure"] == "'=no luck"


def test_every_format_has_the_documented_columns_and_the_same_numbers(study):
    documented = list(queries_csv.meanings(study))
    table = queries_csv.frame(study)
    assert set(table.columns) == set(documented)
    assert {"segment.kind", "segment.system", "judged@10.delta"} <= set(documented)
    # More labelled documents on top is neither help nor harm.
    assert "judged@10.outcome" not in documented
    told = json.loads(queries_csv.as_json(study))
    assert told["columns"] == queries_csv.meanings(study)
    parquet = pd.read_parquet(io.BytesIO(queries_csv.as_parquet(study)))
    sheet = pd.read_csv(io.BytesIO(queries_csv.as_csv(study)), encoding="utf-8-sig")
    for read_back in (parquet, sheet, pd.DataFrame(told["rows"])):
        assert list(read_back.columns) == list(table.columns)
        for spec in study.specs:
            for column in (spec, f"{spec}.delta"):
                np.testing.assert_array_equal(
                    read_back[column].to_numpy(dtype=float), table[column]
                )
    assert (parquet["segment.kind"] == table["segment.kind"]).all()


@pytest.mark.parametrize(
    ("document", "query", "lacks"), [("a", "q", False), ("", "q", True), ("a", "", True)]
)
def test_texts_of_both_queries_and_documents_are_needed_to_train_with(document, query, lacks):
    data = SimpleNamespace(
        document_text=lambda: pd.Series(["", document]), query_text=lambda: pd.Series([query, ""])
    )
    assert lacks_texts(SimpleNamespace(dataset=data)) is lacks


def cells_of(content: bytes) -> list[str]:
    return [cell for line in csv.reader(io.StringIO(content.decode("utf-8-sig"))) for cell in line]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_from_the_data_runs_in_a_spreadsheet(text):
    hostile = study_of([text] * len(QUERIES), name=text)
    for content in (queries_csv.as_csv(hostile), zip_file.comparison_csv(hostile)):
        texts = [cell for cell in cells_of(content) if not NUMBER.fullmatch(cell)]
        assert not [cell for cell in texts if cell.startswith(tuple("=+-@\t\r＝"))]
        assert f"'{text}" in texts
    # And a number stays one: the deltas of a worse system are below 0.
    worse = pd.DataFrame({text: [-0.25, 1.5], "ok": [text, "plain"]})
    head, first, second = csv_bytes(worse).decode("utf-8-sig").split("\r\n")[:3]
    assert first.startswith("-0.25,")
    assert second == "1.5,plain"
    assert cells_of(csv_bytes(worse))[0] == f"'{text}"
    assert head.lstrip('"').startswith("'")


def test_csv_is_written_only_where_its_cells_are_defused():
    """A new way out for texts has to come here first."""
    package = Path(rankdash.__file__).parent
    writes = re.compile(r"to_csv\(|csv\.writer\(|DictWriter\(")
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if writes.search(path.read_text())
    }
    assert found == {
        "spreadsheet.py",
        "reporting/exports/costs_csv.py",
        "cli/output.py",
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


def test_columns_of_one_name_are_both_defused():
    twice = pd.DataFrame([["=1", "=2"]], columns=["a", "a"])
    assert cells_of(csv_bytes(twice))[2:] == ["'=1", "'=2"]


# A file that begins with a bracket is taken for JSON.
IDS = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1, max_size=6
).filter(lambda text: text[0] not in "{[")


@st.composite
def lists(draw):
    """Rankings with ties and without, and labels for some of what is ranked."""
    ranked, labels = [], []
    for query in draw(st.lists(IDS, min_size=1, max_size=4, unique=True)):
        docs = draw(st.lists(IDS, min_size=1, max_size=8, unique=True))
        scores = draw(
            st.lists(
                st.integers(-3, 3).map(lambda n: n / 4), min_size=len(docs), max_size=len(docs)
            )
        )
        ranked.append((query, docs, sorted(scores, reverse=True)))
        grades = draw(st.lists(st.integers(0, 3), min_size=len(docs), max_size=len(docs)))
        labels += [(query, doc, float(grade)) for doc, grade in zip(docs, grades, strict=True)]
    return Ranking.from_lists(ranked), pd.DataFrame(labels, columns=["query_id", "doc_id", "label"])


@given(lists())
@settings(max_examples=60)
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
    table = queries_csv.frame(compared)
    for system in compared.chosen:
        lines = run_bytes(zip_file.shown_ranking(compared, system), "x").decode().splitlines()
        run: dict[str, dict[str, float]] = {}
        for query, _q0, doc, _rank, score, _tag in map(str.split, lines):
            run.setdefault(query, {})[doc] = float(score)
        labels: dict[str, dict[str, int]] = {}
        for line in qrels_bytes(compared.dataset.qrels).decode().splitlines():
            query, _zero, doc, label = line.split()
            labels.setdefault(query, {})[doc] = int(label)
        asked = {"ndcg_cut.10", "recall.10", "P.10"}
        referee = pytrec_eval.RelevanceEvaluator(labels, asked).evaluate(run)
        own = table[table["system_id"] == system].set_index("query_id")
        scored = own.index[own["state"] == "scored"]
        assert len(scored) >= 9
        # What failed or was not run is not in the file, and so no zero there either.
        assert ("q3" in referee) == (system == FIRST_STAGE)
        for query in scored:
            for spec, name in TREC_NAMES.items():
                assert own.loc[query, spec] == pytest.approx(referee[query][name], abs=1e-9)


def test_ids_with_blanks_are_refused_in_words(study):
    blank = Ranking.from_lists([("a query", ["d"], [1.0])])
    with pytest.raises(DataError, match="separates its fields by blanks"):
        run_bytes(blank, "x")


def test_a_compact_table_marks_what_is_significant_and_sets_the_best_in_bold(study):
    [head, _rule, first, second, *_rest] = "".join(
        compact_markdown(study.comparison, study.names)
    ).splitlines()
    assert head.startswith("| system | NDCG@10 | MRR@10 |")
    place = [cell.strip() for cell in head.split("|")].index("NDCG@10")
    assert second.split("|")[place].strip() == "**1.0000**†"
    assert "**" not in first.split("|")[place]
    judged = [cell.strip() for cell in head.split("|")].index("Judged@10")
    assert "**" not in second.split("|")[judged]
    text = "".join(compact_latex(study.comparison, study.names))
    assert r"\textbf{1.0000}$^{\dagger}$" in text
    for rule in ("\\toprule", "\\midrule", "\\bottomrule", "\\begin{tabular}", "\\end{tabular}"):
        assert rule in text
    assert "9 to 11 queries" in text or "9 to 12 queries" in text


def test_a_compact_table_marks_what_is_significantly_worse(study):
    turned = Study(
        dataset=study.dataset,
        systems=study.systems,
        baseline=study.challengers[0],
        challengers=(study.baseline,),
        statistics=study.statistics,
    )
    rows = "".join(compact_markdown(turned.comparison, turned.names)).splitlines()
    assert rows[3] == (
        "| First stage | 0.4307‡ | 0.2500‡ | 0.2500‡ | **1.0000** | **0.1000** | **1.0000** | "
        "1.0000 |"
    )


def test_equal_means_are_all_the_best(study):
    rows = "".join(compact_markdown(study.comparison, study.names)).splitlines()
    recall = [cell.strip() for cell in rows[0].split("|")].index("Recall@10")
    assert [line.split("|")[recall].strip() for line in rows[2:4]] == ["**1.0000**"] * 2
