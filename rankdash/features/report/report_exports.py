"""Values of every query and system for a spreadsheet or a program, and hard negatives to train a
reranker.

The queries have one row per query and system, the baseline first within a query. The column names
(`COLUMNS`) are the same in CSV, Parquet and JSON, in every language and for every data set, so that
programs can rely on them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import DataError
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.text import csv_bytes
from rankdash.core.metrics import STATES, Evaluation, Measure, parse_measure
from rankdash.core.statistics.alignment import PAIRED, direction, paired
from rankdash.core.study.study import Study

SEGMENT = "segment."

DELTA, OUTCOME = ".delta", ".outcome"

COLUMNS: Mapping[str, str] = {
    "query_id": "ID of the query.",
    "text": "Text of the query; empty if the data has none.",
    f"{SEGMENT}…": "A further column of the data set's queries.",
    "system_id": "ID of the system: first-stage or the ID of a run.",
    "system": "Name of the system.",
    "role": "Either baseline or challenger.",
    "state": "Either scored, or another state of the query in {metric}: failed, skipped (not run), "
    "no_relevant, missing (not in the ranking: scores 0 or is excluded, by the metric "
    "conventions), undefined, absent.",
    "failure": "The error, if the state is failed.",
    "reason": "Reason of the query's change in {metric}, as a code.",
    "latency_ms": "The latency of the query in milliseconds; empty if it was not measured.",
    "METRIC": "Value of {metric}; empty if the query is excluded from its mean. A failed query "
    "never counts as 0.",
    f"METRIC{DELTA}": "Challenger minus baseline in {metric}; empty unless both have a value.",
    f"METRIC{OUTCOME}": "One of helped, same, hurt in {metric}, or the reason for a missing "
    "difference.",
}
"""Column → description. "…" is the name of a segment, METRIC a spec such as ndcg@10; a metric that
describes labels has no outcome."""

_MOVED = np.array(["same", "helped", "hurt"], dtype=object)

_NO_ROW = len(STATES)

_STATE_NAMES = np.array([*STATES, "absent"], dtype=object)


def query_frame(study: Study) -> pd.DataFrame:
    """Return the table with the columns of `COLUMNS`; missing values are NaN or None."""
    ids = _all_queries(study)
    parts = [_of_system(study, system, ids) for system in study.chosen]
    # By query, then by system, so that the rows of a query are adjacent.
    order = np.argsort(np.tile(np.arange(len(ids)), len(parts)), kind="stable")
    table = pd.concat(parts, ignore_index=True).iloc[order].reset_index(drop=True)
    about = study.dataset.queries.set_index("query_id").reindex(table["query_id"])
    text = about["text"].to_numpy(dtype=object)
    table.insert(1, "text", np.where(pd.isna(text), "", text))
    for place, name in enumerate(study.dataset.segments):
        table.insert(2 + place, f"{SEGMENT}{name}", about[name].to_numpy(dtype=object))
    return table


def queries_csv(study: Study) -> bytes:
    """Return CSV for a spreadsheet, with formulas made harmless."""
    return csv_bytes(query_frame(study))


def queries_parquet(study: Study) -> bytes:
    """Return Parquet for a program: exact numbers, each column with its type."""
    out = io.BytesIO()
    table = query_frame(study)
    for segment in study.dataset.segments:
        # A segment may contain values of any type; all are names.
        table[f"{SEGMENT}{segment}"] = table[f"{SEGMENT}{segment}"].astype("str")
    table.to_parquet(out, index=False)
    return out.getvalue()


def queries_json(study: Study) -> bytes:
    """Return JSON with `columns` (descriptions) and `rows`; null if there is no value."""
    table = query_frame(study)
    plain = table.astype(object).where(table.notna(), None)
    document = {"columns": meanings(study), "rows": plain.to_dict("records")}
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def meanings(study: Study) -> dict[str, str]:
    """Return column → description in the current language, for the columns of this study's
    table."""
    descriptions: dict[str, str] = {}
    for name, meaning in COLUMNS.items():
        text = _(meaning, metric=study.measure.title)
        if name.startswith(SEGMENT):
            descriptions |= {f"{SEGMENT}{each}": text for each in study.dataset.segments}
        elif not name.startswith("METRIC"):
            descriptions[name] = text
    for spec in study.specs:
        measure = parse_measure(spec)
        ends = ("", DELTA, OUTCOME) if measure.metric.measures_quality else ("", DELTA)
        for end in ends:
            meaning = COLUMNS[f"METRIC{end}"]
            descriptions[f"{spec}{end}"] = _(meaning, metric=measure.title)
    return descriptions


def _all_queries(study: Study) -> npt.NDArray[np.object_]:
    """Return every query that any system was evaluated on, in the baseline's order first."""
    return pd.unique(np.concatenate([each.query_ids for each in study.evaluations.values()]))


def _of_system(study: Study, system: str, ids: npt.NDArray[np.object_]) -> pd.DataFrame:
    evaluation = study.evaluations[system]
    rows = pd.Index(evaluation.query_ids).get_indexer(pd.Index(ids))
    alone = system == study.baseline
    failures = study.failures(system)
    columns: dict[str, object] = {
        "query_id": ids,
        "system_id": system,
        "system": study.name(system),
        "role": "baseline" if alone else "challenger",
        "state": _states(evaluation, study.measure, rows),
        "failure": _looked_up(failures.set_index("query_id")["reason"], ids),
        "reason": _reasons(study, system, ids),
        "latency_ms": _latencies(study, system, ids),
    }
    for spec in study.specs:
        values = np.append(evaluation.column(spec), np.nan)
        columns[spec] = values[rows]
        delta, outcome = _change(study, system, spec, ids)
        columns[f"{spec}{DELTA}"] = delta
        if parse_measure(spec).metric.measures_quality:
            columns[f"{spec}{OUTCOME}"] = outcome
    return pd.DataFrame(columns)


def _states(
    evaluation: Evaluation, measure: Measure, rows: npt.NDArray[np.intp]
) -> npt.NDArray[np.object_]:
    cells = evaluation.cell_states[:, evaluation.measures.index(measure)]
    return _STATE_NAMES[np.append(cells, np.int8(_NO_ROW))[rows]]


def _reasons(study: Study, system: str, ids: npt.NDArray[np.object_]) -> npt.NDArray[np.object_]:
    why = None if system == study.baseline else study.reasons(system)
    return np.full(len(ids), None) if why is None else _looked_up(why["reason"], ids)


def _looked_up(values: pd.Series[str], ids: npt.NDArray[np.object_]) -> npt.NDArray[np.object_]:
    texts: npt.NDArray[np.object_] = values.reindex(ids).to_numpy(dtype=object, copy=True)
    texts[pd.isna(texts)] = None
    return texts


def _latencies(study: Study, system: str, ids: npt.NDArray[np.object_]) -> npt.NDArray[np.float64]:
    run = study.run(system)
    if run is None:
        return np.full(len(ids), np.nan)
    return run.queries.set_index("query_id")["latency_ms"].reindex(ids).to_numpy(dtype=np.float64)


def _change(
    study: Study, system: str, spec: str, ids: npt.NDArray[np.object_]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.object_]]:
    """Return the change of each query and its outcome; NaN and None for the baseline."""
    if system == study.baseline:
        return np.full(len(ids), np.nan), np.full(len(ids), None)
    both = study.evaluations[study.baseline], study.evaluations[system]
    pairs = paired(*both, spec).set_index("query_id").reindex(ids)
    delta = pairs["delta"].to_numpy(dtype=np.float64)
    state = pairs["state"].to_numpy(dtype=object)
    moved = _MOVED[direction(delta, study.statistics.tie_band)]
    return delta, np.where(state == PAIRED, moved, state)


# Hard negatives to train a reranker, in the triplet format of sentence-transformers.

MOST_NEGATIVES = 5
"""Hard negatives per relevant document; the highest ranked ones are the hardest."""

TRIPLETS = ("query", "positive", "negative", "query_id", "positive_id", "negative_id")


def triplets(study: Study, system: str) -> pd.DataFrame:
    """Return hard negatives with the columns `TRIPLETS`.

    Each relevant document of a ranking is paired with each of the first `MOST_NEGATIVES` documents
    of the ranking that are labelled not relevant, if they rank above it.

    The texts are the ones that a model reads; rows without a text are omitted. A document without a
    label is not a negative, because it may be relevant.
    """
    ranked = study.ranking(system).frame()[["query_id", "doc_id", "rank"]]
    rows = ranked.merge(study.dataset.qrels, on=["query_id", "doc_id"])
    relevant = rows["label"] >= study.conventions.threshold
    wrong = rows[~relevant].groupby("query_id", sort=False).head(MOST_NEGATIVES)
    pairs = rows[relevant].merge(wrong, on="query_id", suffixes=("_positive", "_negative"))
    pairs = pairs[pairs["rank_negative"] < pairs["rank_positive"]]
    texts, queries = study.dataset.document_text(), study.dataset.query_text()
    table = pd.DataFrame(
        {
            "query": queries.reindex(pairs["query_id"]).to_numpy(dtype=object),
            "positive": texts.reindex(pairs["doc_id_positive"]).to_numpy(dtype=object),
            "negative": texts.reindex(pairs["doc_id_negative"]).to_numpy(dtype=object),
            "query_id": pairs["query_id"].to_numpy(dtype=object),
            "positive_id": pairs["doc_id_positive"].to_numpy(dtype=object),
            "negative_id": pairs["doc_id_negative"].to_numpy(dtype=object),
        }
    )
    written = table[["query", "positive", "negative"]].fillna("").astype(bool).all(axis=1)
    return table[written].reset_index(drop=True)


_TRAINING_INPUTS = ["query", "positive", "negative"]
"""In this order and without ids, because losses of sentence-transformers use every column as an
input."""


def lacks_texts(study: Study) -> bool:
    """Return whether the data set has no texts to train with."""
    data = study.dataset
    return not (data.document_text().ne("").any() and data.query_text().ne("").any())


def triplet_lines(study: Study, system: str) -> bytes:
    """Return a JSON line for each triplet; empty if no such document ranks above a relevant one.

    Raises DataError if the data set has no texts.
    """
    if lacks_texts(study):
        raise DataError("The data set has no texts of queries and documents.")
    rows = triplets(study, system)[_TRAINING_INPUTS].to_dict("records")
    lines = (f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    return "".join(lines).encode("utf-8", "replace")
