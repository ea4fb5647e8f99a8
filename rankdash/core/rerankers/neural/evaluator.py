"""`SentenceEvaluator`: the values of rankdash during a training with sentence-transformers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rankdash.core.base import files
from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, Evaluation, evaluate, judge, parse_metrics
from rankdash.core.rerankers.neural.model_files import without
from rankdash.core.statistics.comparison import StatisticsSettings, compare, mean_intervals

_FIRST, _MODEL = "first stage", "model"
RESULTS = "rankdash_results.jsonl"
"""The file in the output folder, with a line for each evaluation."""


class SentenceEvaluator:
    """An evaluator for the trainers of sentence-transformers: a model reranks the first stage of
    `data`, and its values are graded, with intervals.

    data: a data set with texts. metrics: the first is the primary metric, which chooses the best
        checkpoint. depth: the number of candidates to rerank per query; None for all. name: the
        prefix of all values; "" for the name of the data set. conventions: None for the defaults.
        batch_size: of the model.

    Called with a CrossEncoder, a SentenceTransformer or another model that encodes queries and
    documents, it returns for each metric its mean, the ends of its interval (`_low`, `_high`), the
    mean of the first stage (`_base`), and the change with its interval (`_change`, `_change_low`,
    `_change_high`), such as "shop_ndcg@10_change". Values that do not exist are omitted. Documents
    without a text stay below the others.

    Every object is also a `SentenceEvaluator` of sentence-transformers, which is imported when the
    first one is created. Raises UnavailableError without it, SpecError for an unknown metric, and
    DataError for data without texts.
    """

    primary_metric: str
    greater_is_better = True

    def __new__(cls, *_arguments: object, **_settings: object) -> SentenceEvaluator:
        return super().__new__(_subclass() if cls is SentenceEvaluator else cls)

    def __init__(
        self,
        data: Dataset,
        metrics: str | Iterable[str] = "ndcg@10, mrr@10",
        *,
        depth: int | None = None,
        name: str = "",
        conventions: Conventions | None = None,
        batch_size: int = 32,
    ) -> None:
        parsed = parse_metrics(metrics)
        self.name = name or data.name
        self.primary_metric = f"{self.name}_{parsed.specs[0]}"
        self._data, self._batch_size = data, batch_size
        self._rules = conventions or (
            Conventions() if parsed.threshold is None else Conventions(threshold=parsed.threshold)
        )
        self._measures = parsed.specs
        self._lists = _lists(data, depth)
        if not any(number for _, _, number in self._lists):
            raise DataError("The data set has no texts of queries and documents.")
        self._texts = data.query_text().to_dict(), data.document_text().to_dict()
        self._first = self._evaluated(data.candidates.only(set(data.labels["query_id"].objects())))

    @property
    def description(self) -> str:
        """The name of the evaluator in the model card."""
        return "rankdash Reranking"

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Return metric → value. output_path: a folder; its file `RESULTS` gets a line."""
        found = self._evaluated(self._reranked(model))
        values = {f"{self.name}_{key}": value for key, value in self._values(found).items()}
        store = getattr(self, "store_metrics_in_model_card_data", None)
        if store is not None and hasattr(model, "model_card_data"):
            store(model, values, epoch, steps)
        if output_path is not None:
            folder = Path(output_path)
            folder.mkdir(parents=True, exist_ok=True)
            line = json.dumps({"epoch": epoch, "steps": steps, **values}, ensure_ascii=False)
            files.append(folder / RESULTS, [f"{line}\n".encode("utf-8", "replace")])
        return values

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings for the model card."""
        return {"data_id": self._data.id, "metrics": [*self._measures]}

    def _evaluated(self, ranking: Ranking) -> Evaluation:
        return evaluate(judge(ranking, self._data.labels, self._rules), self._measures, self._rules)

    def _values(self, found: Evaluation) -> dict[str, float]:
        both = {_FIRST: self._first, _MODEL: found}
        settings = StatisticsSettings.for_queries(len(found.query_ids))
        comparison = compare(both, _FIRST, settings)
        ends = mean_intervals({_MODEL: found}, _MODEL, settings)
        values: dict[str, Any] = {}
        for spec, (_, own) in zip(self._measures, ends.iterrows(), strict=True):
            row = comparison.row(_MODEL, spec)
            values |= {spec: own["mean"], f"{spec}_low": own["low"], f"{spec}_high": own["high"]}
            values |= {f"{spec}_base": self._first.mean(spec), f"{spec}_change": row["delta"]}
            values |= {f"{spec}_change_low": row["delta_low"]}
            values |= {f"{spec}_change_high": row["delta_high"]}
        known = {key: float(value) for key, value in values.items()}
        return {key: value for key, value in known.items() if not math.isnan(value)}

    def _reranked(self, model: Any) -> Ranking:
        """Return the candidates, ordered by the model; the others below without a score."""
        queries, documents = self._texts
        pairs = [
            (queries[query], documents[doc])
            for query, docs, number in self._lists
            for doc in docs[:number]
        ]
        scores = _scores(model, pairs, self._batch_size)
        lists, start = [], 0
        for query, docs, number in self._lists:
            scored = scores[start : start + number]
            start += number
            order = np.argsort(-scored, kind="stable")
            ranked = [docs[place] for place in order] + docs[number:]
            ends = np.full(len(docs) - number, np.nan)
            lists.append((query, ranked, [*scored[order].tolist(), *ends.tolist()]))
        return Ranking.from_lists(lists)


def _lists(data: Dataset, depth: int | None) -> list[tuple[str, list[str], int]]:
    """Return each labelled query with its candidates and the number of them to score: the first
    ones, which have a text and are within the depth."""
    labelled, texts = set(data.labels["query_id"].objects()), data.query_text()
    lists = []
    for query in data.candidates.query_ids:
        if query not in labelled:
            continue
        docs = data.candidates.documents_of(query)[0]
        near = docs[:depth] if texts[query].strip() else []
        scored = [doc for doc in near if doc not in data.textless]
        chosen = set(scored)
        lists.append((query, scored + [doc for doc in docs if doc not in chosen], len(scored)))
    return lists


def _scores(model: Any, pairs: list[tuple[str, str]], batch_size: int) -> Any:
    """Return the (N,) scores of the pairs. Raises SpecError for a model that does not score."""
    if hasattr(model, "predict"):
        scores = model.predict(pairs, batch_size=batch_size, show_progress_bar=False)
        scores = np.asarray(scores, dtype=np.float64)
    elif hasattr(model, "encode"):
        scores = _similarities(model, pairs, batch_size)
    else:
        raise SpecError(
            "The model has neither predict nor encode, so it cannot score pairs.",
            remedy="Pass a CrossEncoder or a SentenceTransformer.",
        )
    if scores.shape != (len(pairs),):
        raise SpecError(
            "The model returns more than one score per pair.",
            remedy="Use a cross-encoder with one output (num_labels=1).",
        )
    if not np.isfinite(scores).all():
        raise DataError(
            "The model returns scores that are not finite numbers.",
            remedy="Lower the learning rate, or train in higher precision.",
        )
    return scores


def _similarities(model: Any, pairs: list[tuple[str, str]], batch_size: int) -> Any:
    """Return the similarity of each pair; each text is encoded once."""
    queries = {text: place for place, text in enumerate(dict.fromkeys(q for q, _ in pairs))}
    documents = {text: place for place, text in enumerate(dict.fromkeys(d for _, d in pairs))}
    settings = {"batch_size": batch_size, "show_progress_bar": False, "convert_to_tensor": True}
    encoded_queries = getattr(model, "encode_query", model.encode)([*queries], **settings)
    encoded = getattr(model, "encode_document", model.encode)([*documents], **settings)
    scores, start = np.empty(len(pairs)), 0
    while start < len(pairs):
        query, stop = pairs[start][0], start
        while stop < len(pairs) and pairs[stop][0] == query:
            stop += 1
        rows = [documents[document] for _, document in pairs[start:stop]]
        place = queries[query]
        similar = model.similarity(encoded_queries[place : place + 1], encoded[rows])
        scores[start:stop] = np.asarray(similar.detach().float().cpu()).reshape(-1)
        start = stop
    return scores


@cache
def _subclass() -> type[SentenceEvaluator]:
    """Return the class that is also an evaluator of sentence-transformers."""
    try:
        from sentence_transformers.base.evaluation import BaseEvaluator
    except ImportError as error:
        raise without([error.name or "sentence-transformers"]) from error
    return type(
        SentenceEvaluator.__name__,
        (SentenceEvaluator, BaseEvaluator),
        {"__doc__": SentenceEvaluator.__doc__},
    )
