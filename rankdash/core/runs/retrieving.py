"""Retrieval from all documents of a data set as a run, and runs that rerank its candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError, SettingError
from rankdash.core.base.rules import Settings, SettingSpec, SettingValue, described_by, settings_of
from rankdash.core.data.dataset import Dataset, Retriever
from rankdash.core.data.ranking import RETRIEVAL, SOURCE, SOURCE_ID, Run, digest
from rankdash.core.rerankers.neural.packaged import in_use
from rankdash.core.rerankers.retrieval import encoder_for, retrieve
from rankdash.core.runs.concurrency import machine

HYBRID = "hybrid"


@dataclass(frozen=True)
class Retrieval(Settings):
    """Method and depth of a retrieval. Raises SettingError for an invalid value."""

    how: str = described_by(
        SettingSpec(
            "",
            "bm25",
            "Method",
            "BM25 compares words, and vectors compare the meaning, by a packaged bi-encoder. "
            "Hybrid fuses both by reciprocal rank.",
            choices={"bm25": "BM25", "bi-encoder": "Vectors", HYBRID: "Hybrid"},
        )
    )
    depth: int = described_by(
        SettingSpec("", 100, "Depth", "Documents retrieved per query.", within=(1, math.inf))
    )


RETRIEVAL_SETTINGS: tuple[SettingSpec, ...] = settings_of(Retrieval)


def retrieved(dataset: Dataset, how: Retrieval, name: str) -> Run:
    """Retrieve from all documents of a data set with a text; return a run without latencies.

    A query without a text fails. A query that BM25 cannot match is done, with an empty list. The
    settings of the run are the method, the depth and the model.

    Raises DataError if the data set has no texts, or nothing is retrieved, and UnavailableError if
    a model or a package is missing.
    """
    if not dataset.has_texts:
        raise DataError(
            "This data set has no texts, which retrieval needs.",
            remedy="Upload it again with the texts of its queries and documents.",
        )
    queries, documents = (
        texts[texts.str.strip() != ""] for texts in (dataset.query_text(), dataset.document_text())
    )
    method = cast(Retriever, "fused" if how.how == HYBRID else how.how)
    model = encoder_for(queries)
    ranking = retrieve(method, queries, documents, how.depth, model)
    if not len(ranking.query_ids):
        raise DataError(
            "BM25 retrieved nothing: the queries share no word with the documents.",
            remedy="Retrieve by vectors instead.",
        )
    by_words = how.how == "bm25"
    settings = {**how.as_dict(), **({} if by_words else {"model": model})}
    known = None if by_words else in_use(model)
    weights = {} if known is None else known.provenance
    wish = (dataset.id, RETRIEVAL, name, repr(sorted(settings.items())), repr(weights))
    return Run(
        id=digest(text.encode("utf-8", "surrogatepass") for text in wish),
        name=name,
        dataset_id=dataset.id,
        ranking=ranking,
        reranker=RETRIEVAL,
        queries=_queries(dataset, set(queries.index)),
        settings=settings,
        machine={**machine(), **weights},
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


def _queries(dataset: Dataset, with_text: set[str]) -> pd.DataFrame:
    ids = dataset.queries["query_id"].to_numpy(dtype=object)
    done = np.array([query in with_text for query in ids], dtype=bool)
    table = pd.DataFrame(
        {
            "query_id": ids,
            "state": np.where(done, "done", "failed"),
            "reason": np.where(done, "", "the query has no text"),
        }
    ).astype("str")
    unknown = np.full(len(table), math.nan)
    # No pair was scored by a reranker.
    pairs = np.where(done, 0.0, math.nan)
    return table.assign(
        latency_ms=unknown, index_ms=unknown, pairs=pairs, tokens=unknown, truncated=unknown
    )


# The source of a rerank run: the retrieval run with its candidates.


def with_source(settings: Mapping[str, SettingValue], run: Any) -> dict[str, SettingValue]:
    """Return the settings of a rerank run over the candidates of a retrieval run.

    run: a `Run`, or its row in a workspace. Raises SettingError for a run of another kind.
    """
    if run.reranker != RETRIEVAL:
        raise SettingError(
            "{name} is not a retrieval, so its candidates cannot be reranked.",
            remedy="Choose the first stage or a retrieval.",
            name=run.name,
        )
    return {**settings, SOURCE: run.name, SOURCE_ID: run.id}


def without_source(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the reranker itself."""
    return {name: value for name, value in settings.items() if name not in (SOURCE, SOURCE_ID)}
