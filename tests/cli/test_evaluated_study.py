"""`evaluate` makes its study of ids alone; its values are those of the study of whole tables, to
the last digit, however the files are written."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rankdash.cli.evaluate import Results, evaluate_files
from rankdash.cli.rankings import Rules
from rankdash.dataset import Dataset
from rankdash.metrics import Conventions, parse_metrics
from rankdash.ranking.ranking import Ranking
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, systems_of

QUERIES, DEPTH = 12, 15
METRICS = "ndcg@10,map,mrr,recall@5,judged@10,err@10,bpref"
RULES = {"max": "highest", "min": "lowest", "mean": "mean"}
CONVENTIONS = [
    Conventions(),
    Conventions.trec_eval(),
    Conventions(ties="stable", judged_only=True, missing="skip", no_relevant="count"),
    Conventions(queries="both", negative="unjudged", threshold=2.0, ap_norm="min(R,k)"),
]


def _labels() -> pd.DataFrame:
    """Of every query but the last, rows of a query apart, some below 0, one query without a
    relevant document, some pairs labelled twice or thrice."""
    rng = np.random.default_rng(3)
    rows = [
        (f"q{query}", f"文{doc}" if doc % 5 == 0 else f"d{doc}", int(rng.integers(-1, 4)))
        for query in range(QUERIES - 1)
        for doc in rng.permutation(30)[:12]
    ]
    rows = [(query, doc, min(label, 0) if query == "q4" else label) for query, doc, label in rows]
    rows += [(query, doc, (label + 2) % 4) for query, doc, label in rows[::9]] + rows[::7]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "label"]).sample(
        frac=1, random_state=1
    )


def _ranking(seed: int) -> pd.DataFrame:
    """Of every query but one, with ties, in no order."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"q{query}", f"文{doc}" if doc % 5 == 0 else f"d{doc}", float(rng.integers(0, 6)) / 3)
        for query in range(QUERIES)
        if query != seed
        for doc in rng.permutation(30)[:DEPTH]
    ]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "score"]).sample(
        frac=1, random_state=seed
    )


def _trec(frame: pd.DataFrame) -> str:
    middle = {"label": "{0} 0 {1} {2}\n", "score": "{0} Q0 {1} 1 {2!r} x\n"}[frame.columns[2]]
    return "".join(middle.format(*row) for row in frame.itertuples(index=False, name=None))


def _csv(frame: pd.DataFrame) -> str:
    return frame.to_csv(index=False)


# How a file is written → its text. Arrow leaves those with blank lines or quotation marks alone.
FORMS = {
    "trec": _trec,
    "trec with a blank line": lambda frame: _trec(frame).replace("\n", "\n\n", 1),
    "csv": _csv,
    "csv, crlf": lambda frame: _csv(frame).replace("\n", "\r\n"),
    "quoted csv": lambda frame: frame.to_csv(index=False, quoting=2),
    "tsv": lambda frame: frame.to_csv(index=False, sep="\t"),
    "parquet": None,
}


@dataclass(frozen=True)
class Written:
    folder: Path
    form: str

    def file(self, name: str, frame: pd.DataFrame) -> str:
        path = self.folder / f"{name}.{self.form.split()[0].strip(',')}"
        if self.form == "parquet":
            frame.to_parquet(path)
        else:
            path.write_bytes(FORMS[self.form](frame).encode())
        return str(path)


def _whole(labels: pd.DataFrame, conventions: Conventions) -> Study:
    """The study of tables that were never written. labels: one a pair."""
    first, second = (
        Ranking.from_columns(rows["query_id"], rows["doc_id"], rows["score"], ties="trec")
        for rows in map(_ranking, (1, 2))
    )
    documents = [f"文{doc}" if doc % 5 == 0 else f"d{doc}" for doc in range(30)]
    data = Dataset(
        "labels",
        pd.DataFrame({"query_id": [f"q{query}" for query in range(QUERIES)], "text": None}),
        pd.DataFrame({"doc_id": documents, "title": "", "text": None}),
        labels,
        first,
    )
    run = run_from_ranking("b", data.id, second, "b")
    specs = parse_metrics([METRICS]).specs
    return Study.on(
        specs[0],
        others=tuple(specs[1:]),
        dataset=data,
        systems=systems_of(data, [run]),
        baseline=FIRST_STAGE,
        challengers=(run.id,),
        conventions=conventions,
    )


def _agree(results: Results, study: Study) -> None:
    for found, expected in zip(results.systems.values(), study.evaluations.values(), strict=True):
        assert dict(found.counts) == dict(expected.counts)
        order = np.argsort(found.query_ids.astype(str))
        other = np.argsort(expected.query_ids.astype(str))
        assert list(found.query_ids[order]) == list(expected.query_ids[other])
        assert list(found.states[order]) == list(expected.states[other])
        for measure in results.measures.values():
            values = found.column(measure)[order]
            np.testing.assert_array_equal(values, expected.column(measure)[other])


def _evaluated(folder: Path, form: str, conventions: Conventions, **rules: object) -> Results:
    written = Written(folder, form)
    files = [written.file(name, _ranking(seed)) for name, seed in (("a", 1), ("b", 2))]
    return evaluate_files(
        written.file("labels", _labels()),
        files,
        parse_metrics([METRICS]).measures,
        Rules(conventions, **rules),
    )


def _settled(how: str, labels: pd.DataFrame) -> pd.DataFrame:
    pairs = labels.groupby(["query_id", "doc_id"], sort=False)["label"]
    return getattr(pairs, how)().reset_index()


@pytest.mark.parametrize("form", FORMS)
def test_however_the_files_are_written(tmp_path: Path, form: str):
    results = _evaluated(tmp_path, form, Conventions())
    _agree(results, _whole(_settled("max", _labels()), Conventions()))


@pytest.mark.parametrize("conventions", CONVENTIONS, ids=lambda each: each.summary[:40])
def test_under_every_convention(tmp_path: Path, conventions: Conventions):
    results = _evaluated(tmp_path, "trec", conventions)
    _agree(results, _whole(_settled("max", _labels()), conventions))


@pytest.mark.parametrize("how", RULES)
def test_with_labels_that_disagree_or_are_reversed(tmp_path: Path, how: str):
    results = _evaluated(tmp_path, "trec", Conventions(), conflict=RULES[how], worst_label=4.0)
    labels = _labels()
    turned = labels.assign(
        label=(4.0 - labels["label"]).where(labels["label"] >= 0, labels["label"])
    )
    _agree(results, _whole(_settled(how, turned), Conventions()))


def test_tables_are_made_when_something_asks_for_them(tmp_path: Path):
    study = _evaluated(tmp_path, "trec", Conventions()).study
    assert len(study.dataset.queries) == QUERIES
    pd.testing.assert_frame_equal(
        study.dataset.qrels.sort_values(["query_id", "doc_id"], ignore_index=True),
        _settled("max", _labels())
        .astype({"query_id": "str", "doc_id": "str", "label": np.float64})
        .sort_values(["query_id", "doc_id"], ignore_index=True),
    )
    assert study.dataset.labelled_queries == QUERIES - 1
    assert study.comparison.row(study.challengers[0], study.spec)["paired"] > 0
