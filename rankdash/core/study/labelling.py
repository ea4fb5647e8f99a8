"""Files of documents to label, the import of their labels, and studies with sampled labels.

The readers can read the file: rows of query, document, an empty label and a rank. A row with an
empty label is an unjudged candidate. The rows are in the order of the draws of a plan, with the
probability of each, so that the labels give an estimate; or the largest effect on the difference is
first, which narrows its bounds soonest but gives no estimate of its mean.

CSV is written with defused ids (`rankdash.core.base.text`), which `merge_labels` restores. JSON
lines do not need this, and prevent that a spreadsheet turns ids such as "007" into 7.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.base.text import defused, restored
from rankdash.core.data.arrays import Integers
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import parse_measure
from rankdash.core.sampling.estimate import Estimate
from rankdash.core.sampling.label_plan import LabelPlan, draws_table
from rankdash.core.sampling.status import LabelStatus, status_of_sampled
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.study.unjudged.system_bounds import UnjudgedComparison

Conflict = Literal["new", "highest", "lowest", "keep"]
CONFLICTS: Mapping[str, str] = {
    "new": "the new label replaces the old one",
    "highest": "use the higher of the two",
    "lowest": "use the lower of the two",
    "keep": "the old label stays",
}
"""The rules for a new label that differs from an existing one."""

MOST_ROWS = 200
SNIPPET = 1_000


def to_label(
    dataset: Dataset,
    comparison: UnjudgedComparison,
    names: tuple[str, str],
    *,
    most: int = MOST_ROWS,
    snippet: int = SNIPPET,
) -> pd.DataFrame:
    """Return the unjudged documents whose labels could change the difference most, the largest
    effect first.

    names: of baseline and challenger in the column heads. most: the maximum number of rows.
    snippet: the maximum number of characters of a document; a truncated text ends with "…".

    Columns: query_id; query and document (text, "" if the data has none); doc_id; label (empty:
    None); rank (1, 2, … within the query, in this order); effect (the signed change of the mean
    difference if the document were fully relevant and the other unjudged ones were not); moves (its
    size); then "rank in {name}" for both systems (Int64, from 1 over the whole list, missing if the
    system does not rank it).

    Documents that cannot change the difference are last; label them only to narrow the bounds.
    """
    order = comparison.order()[:most]
    query = comparison.query_ids[comparison.pool.query[order]]
    doc = comparison.pool.doc_ids[order]
    effect = comparison.effects[order]
    pairs = pd.DataFrame({"query_id": query, "doc_id": doc})
    frame = _to_fill_in(pairs, dataset.query_text(), dataset.document_text(), snippet)
    frame = frame.assign(effect=effect, moves=np.abs(effect))
    for name, system in zip(names, (comparison.baseline, comparison.challenger), strict=True):
        head = f"rank in {name}"
        while head in frame.columns:
            head += " (2)"
        frame[head] = _ranks(system.ranking, query, doc)
    return frame


def sampled_to_label(
    plan: LabelPlan,
    chosen: Integers,
    queries: pd.Series[str],
    documents: pd.Series[str],
    *,
    snippet: int = SNIPPET,
) -> pd.DataFrame:
    """Return pairs of a plan as rows to label. They do not show which system ranks a document, or
    at which rank.

    chosen: indexes into the plan's pool, in this order, such as the next draws.
    queries, documents: id → text.

    Columns: query_id, query, doc_id, document, label and rank as in `to_label`; draw (int, from 1)
    and probability (of the draw, conditional on the draws before it).
    """
    table = draws_table(plan)
    pairs = plan.pool.index[chosen].to_frame(index=False)
    frame = _to_fill_in(pairs, queries, documents, snippet)
    return frame.assign(**{name: table[name].to_numpy()[chosen] for name in table.columns})


def _to_fill_in(
    pairs: pd.DataFrame, queries: pd.Series[str], documents: pd.Series[str], snippet: int
) -> pd.DataFrame:
    """Return query_id and doc_id with their texts, an empty label, and a rank in this order."""
    query, doc = pairs.iloc[:, 0].to_numpy(), pairs.iloc[:, 1].to_numpy()
    texts = documents.reindex(doc).fillna("").to_numpy(dtype=object)
    return pd.DataFrame(
        {
            "query_id": query,
            "query": queries.reindex(query).fillna("").to_numpy(dtype=object),
            "doc_id": doc,
            "document": [_cut(text, snippet) for text in texts],
            "label": np.full(len(doc), None, dtype=object),
            "rank": pd.Series(query).groupby(query).cumcount().to_numpy() + 1,
        }
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _ranks(
    ranking: Ranking, queries: npt.NDArray[np.object_], docs: npt.NDArray[np.object_]
) -> pd.Series[int]:
    places = {
        query: {doc: place for place, doc in enumerate(ranking.documents_of(query)[0], 1)}
        for query in dict.fromkeys(queries)
    }
    ranks = [places[query].get(doc) for query, doc in zip(queries, docs, strict=True)]
    return pd.Series(ranks, dtype="Int64")


def to_label_jsonl(frame: pd.DataFrame) -> bytes:
    """Return a `to_label` frame as JSON lines; the label to fill in is null."""
    rows = json.loads(frame.to_json(orient="records", force_ascii=False, double_precision=15))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode(
        "utf-8", "replace"
    )


@dataclass(frozen=True, eq=False)
class Merged:
    """A data set with labels added, and the number of new labels by outcome.

    added: for pairs without a label before. same: equal to the existing label. changed and kept:
    different ones, by whether the rule replaced the old label. unknown: for a query or document
    that the data set does not have, which are ignored; `examples` has up to five. unranked: for
    a document that was added without a text, because the data set did not have it.
    """

    dataset: Dataset
    added: int
    same: int
    changed: int
    kept: int
    unknown: int
    examples: tuple[tuple[str, str], ...]
    unranked: int = 0


def merge_labels(
    dataset: Dataset, qrels: pd.DataFrame, *, conflict: Conflict = "new", unranked: bool = False
) -> Merged:
    """Return a new data set, with another id, that has the labels of both; `dataset` is unchanged.

    qrels: query_id, doc_id, label (empty labels are ignored), from `readers.read` or from
        `to_label` with labels filled in. Ids that an export defused are restored.
    unranked: whether labels for documents that the data set does not have count, as for results of
        a search engine that did not return them.

    Raises DataError if `qrels` lacks a column, has different labels for a pair, has a label that is
    not a finite number, or if none of its labels matches the data set.
    """
    new = _checked(qrels)
    documents, given = dataset.documents, new["doc_id"]
    new["query_id"] = as_in(new["query_id"], set(dataset.queries["query_id"]))
    new["doc_id"] = as_in(given, set(documents["doc_id"]))
    lost = new["query_id"].isna() | new["doc_id"].isna()
    missed = new["query_id"].notna() & new["doc_id"].isna()
    examples = _checked(qrels)[lost.to_numpy()].head(5)
    if lost.all() and len(new):
        raise DataError(
            "None of the {count} labels match a query and a document of this data set; the "
            "first is for document {doc!r} of query {query!r}.",
            remedy="Check that the file was made from this data set, and that a spreadsheet has "
            "not changed the ids.",
            count=len(new),
            query=str(examples["query_id"].iloc[0]),
            doc=str(examples["doc_id"].iloc[0]),
        )
    if unranked:
        new["doc_id"] = new["doc_id"].where(~missed, as_in(given, {*documents["doc_id"], *given}))
        lost &= ~missed
        examples = _checked(qrels)[lost.to_numpy()].head(5)
        added = new.loc[missed, ["doc_id"]].drop_duplicates().assign(title="", text=None)
        documents = pd.concat([documents, added.astype({"text": "str"})], ignore_index=True)
    new = new[~lost].drop_duplicates(ignore_index=True)
    _refuse_two_labels(new)
    old = dataset.qrels
    both = old.merge(new, on=["query_id", "doc_id"], how="outer", suffixes=("", "_new"), sort=False)
    before, after = both["label"].to_numpy(np.float64), both["label_new"].to_numpy(np.float64)
    met = ~np.isnan(before) & ~np.isnan(after)
    differ = met & (before != after)
    settled = np.where(np.isnan(before), after, before)
    settled[differ] = _settle(before[differ], after[differ], conflict)
    changed = differ & (settled != before)
    merged = both[["query_id", "doc_id"]].assign(label=settled)
    return Merged(
        dataset=Dataset(
            dataset.name,
            dataset.queries,
            documents,
            merged,
            dataset.candidates,
            first_stage=dataset.first_stage,
            candidates_name=dataset.candidates_name,
        ),
        added=int((np.isnan(before) & ~np.isnan(after)).sum()),
        same=int((met & ~differ).sum()),
        changed=int(changed.sum()),
        kept=int((differ & ~changed).sum()),
        unknown=int(lost.sum()),
        examples=tuple(zip(examples["query_id"], examples["doc_id"], strict=True)),
        unranked=int(missed.sum()) if unranked else 0,
    )


def _checked(qrels: pd.DataFrame) -> pd.DataFrame:
    """Return query_id, doc_id and label of the rows with a label. Raises DataError as
    `merge_labels`."""
    missing = [name for name in ("query_id", "doc_id", "label") if name not in qrels.columns]
    if missing:
        raise DataError("The table of labels lacks {missing}.", missing=", ".join(missing))
    frame = qrels[["query_id", "doc_id", "label"]]
    filled = frame["label"].notna() & (frame["label"].astype(object) != "")
    frame = frame[filled].reset_index(drop=True)
    labels = pd.to_numeric(frame["label"], errors="coerce").to_numpy(dtype=np.float64)
    if not np.isfinite(labels).all():
        raise DataError(
            "A label is not a number: {label!r}.",
            remedy="Write numbers into the label column, such as 0, 1 and 2.",
            label=str(frame["label"][~np.isfinite(labels)].iloc[0]),
        )
    return frame.astype({"query_id": object, "doc_id": object}).assign(label=labels)


def as_in(ids: pd.Series[str], known: Collection[str]) -> list[str | None]:
    """Return the ids of a file as in the data set, None for unknown ids.

    Defused ids are restored first, unless some id shows that the file was not defused: otherwise
    "'=1" would become "=1" in a data set that has both "=1" and "'=1".
    """
    if any(defused(name) != name and not name.startswith("'") for name in ids):
        return [name if name in known else None for name in ids]
    spellings = ((restored(name), name) for name in ids)
    return [
        plain if plain in known else (name if name in known else None) for plain, name in spellings
    ]


def _refuse_two_labels(new: pd.DataFrame) -> None:
    twice = new[new.duplicated(["query_id", "doc_id"])]
    if len(twice):
        raise DataError(
            "Pairs with two different new labels: {count}; the first is document {doc!r} of query "
            "{query!r}.",
            remedy="Remove all but one of them.",
            count=len(twice),
            doc=twice["doc_id"].iloc[0],
            query=twice["query_id"].iloc[0],
        )


def _settle(
    before: npt.NDArray[np.float64], after: npt.NDArray[np.float64], conflict: Conflict
) -> npt.NDArray[np.float64]:
    if conflict == "new":
        return after
    if conflict == "keep":
        return before
    chosen: npt.NDArray[np.float64] = (np.maximum if conflict == "highest" else np.minimum)(
        before, after
    )
    return chosen


# Studies with sampled labels: only estimates are valid, means are not.


def with_sampled_labels(study: Study, draws: pd.DataFrame) -> Study:
    """Return the study with estimates from its labels, with its judge's grades as predictions;
    unchanged if every document that a metric reads has a label.

    draws: query_id, doc_id, cannot_tell, draw and probability of the labels; NaN for labels that
    existed before. Undecided labels count as not relevant.
    """
    ids = ["query_id", "doc_id"]
    once = draws.drop_duplicates(ids)
    untold = once[once["cannot_tell"]].assign(label=0.0)
    sampled = pd.concat([study.dataset.qrels.merge(once, on=ids, how="left"), untold])
    sampled = sampled.drop_duplicates(ids, ignore_index=True)
    status = status_of_sampled(
        {study.name(system): study.ranking(system) for system in study.chosen},
        sampled,
        study.specs,
        threshold=study.conventions.threshold,
        level=study.statistics.level,
        judge=study.judge,
    )
    if status is not None and status.complete and _all_labelled(study):
        return study
    if study.conventions.weighted:
        raise SpecError(
            "Sampled labels have no means per search.",
            remedy="Use the weights “per query”, or label all documents that the metric needs.",
        )
    return replace(study, labelling=status or LabelStatus("weight", (), 0, (), (), math.nan))


def only_estimates(study: Study) -> bool:
    """Return whether the labels were sampled and some that the metric needs are missing. Then
    means, counts and rank shifts are wrong, and only the estimates are valid."""
    status = study.labelling
    return status is not None and not (status.complete and _all_labelled(study))


def sampled_from(study: Study) -> int:
    """Return the number of documents that the labels were sampled from; 0 if they were not sampled,
    or if it is unknown."""
    status = study.labelling
    return status.pairs if status is not None and only_estimates(study) else 0


def as_estimated(study: Study) -> Study:
    """Return the study by the metric of its estimates, if only these are valid."""
    if study.labelling is None or not study.labelling.estimates or not only_estimates(study):
        return study
    measure = parse_measure(study.labelling.estimates[0].metric)
    return replace(study, metric=replace(measure, k=None).spec, cutoff=measure.k)


def estimate_of(study: Study, challenger: str) -> Estimate | None:
    """Return the estimate of a challenger against the baseline; None if the labels were sampled for
    other systems."""
    names = study.name(study.baseline), study.name(challenger)
    estimates = () if study.labelling is None else study.labelling.estimates
    return next((each for each in estimates if (each.baseline, each.challenger) == names), None)


def _all_labelled(study: Study) -> bool:
    judged = f"judged@{study.cutoff or 10}"
    return all(study.evaluate(each, (judged,)).mean(judged) == 1 for each in study.chosen)


# Systems against the first stage, and the acceptable loss if some queries are not reranked.


def first_stage_kind(study: Study, challenger: str) -> str:
    """Return the kind of the verdict on a challenger against the first stage, among all chosen
    systems: the study's verdict if the first stage is its baseline."""
    based = replace(
        study,
        baseline=FIRST_STAGE,
        challengers=tuple(system for system in study.chosen if system != FIRST_STAGE),
        # Other metrics matter for the correction only.
        others=() if study.statistics.family == "metric" else study.others,
    )
    return str(based.comparison.row(challenger, study.spec)["verdict"])


TOLERANCE = 0.01
"""The acceptable loss, as a share of the mean of reranking everything."""
