"""First stage computed by rankdash: for each query the best documents of a whole corpus.

`retrieve` starts `python -m rankdash.core.rerankers.retrieval FOLDER DEPTH MODEL` because a model
needs PyTorch, which a server never loads. With the depth 0 the process only embeds the queries.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import RankdashError, UnavailableError
from rankdash.core.base.rules import parse_settings
from rankdash.core.base.shipped import python_path
from rankdash.core.base.text import language_of
from rankdash.core.data.arrays import best_places
from rankdash.core.data.dataset import Retriever
from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers.base import Corpus
from rankdash.core.rerankers.catalogue import known_models
from rankdash.core.rerankers.fusion import Fusion, fuse
from rankdash.core.rerankers.kinds import bi_encoder, bm25
from rankdash.core.rerankers.neural.model_files import PACKAGED, require_packages
from rankdash.core.rerankers.neural.packaged import MODELS, fitting

_QUERIES, _DOCUMENTS, _FOUND = "queries.parquet", "documents.parquet", "found.parquet"
_VECTORS = "vectors.npy"
_MODULE = "rankdash.core.rerankers.retrieval"


def retrieve(
    how: Retriever,
    queries: pd.Series[str],
    documents: pd.Series[str],
    depth: int,
    model: str = PACKAGED,
) -> Ranking:
    """Return the best `depth` documents of the corpus for each query; equal scores keep their
    order.

    queries, documents: id → text. A query without a match has no rows. "fused" is the reciprocal
        rank fusion of the other two, truncated at the depth.
    model: the packaged bi-encoder.

    Raises UnavailableError if a model or a package is missing.
    """
    if how == "bm25":
        return _by_words(queries, documents, depth)
    by_meaning = _apart(queries, documents, depth, model)
    if how == "bi-encoder":
        return by_meaning
    by_words = _by_words(queries, documents, depth)
    # Fusing would drop a query that shares no word with any document.
    every = ((query, *by_words.documents_of(query)) for query in by_meaning.query_ids)
    both = Ranking.from_lists((query, docs, scores.tolist()) for query, docs, scores in every)
    fused = fuse([by_meaning, both], Fusion())
    lists = ((query, *fused.documents_of(query)) for query in fused.query_ids)
    return Ranking.from_lists(
        (query, docs[:depth], scores[:depth].tolist()) for query, docs, scores in lists
    )


def _by_words(queries: pd.Series[str], documents: pd.Series[str], depth: int) -> Ranking:
    """Retrieve by BM25. A document that shares no word with the query is not retrieved."""
    index = bm25.Index([str(text) for text in documents], bm25.DEFAULTS)
    doc_ids = documents.index.to_numpy(dtype=object)
    lists = []
    for query, text in queries.items():
        scores = index.scores(str(text))
        matching = np.flatnonzero(scores > 0)
        best = matching[best_places(scores[matching], depth)]
        if len(best):
            lists.append((str(query), list(doc_ids[best]), list(scores[best])))
    return Ranking.from_lists(lists)


def encoder_for(queries: pd.Series[str]) -> str:
    """Return the packaged bi-encoder that supports the language of the queries."""
    return fitting(PACKAGED, language_of(queries))


def _by_meaning(
    queries: pd.Series[str], documents: pd.Series[str], depth: int, model: str
) -> Ranking:
    """Retrieve by a packaged bi-encoder; loads it. Raises UnavailableError if the model or its
    packages are missing."""
    encoder = _encoder(model)
    texts = {str(doc): str(text) for doc, text in documents.items()}
    encoder.prepare(Corpus(list(texts), list(texts.values())))
    return encoder.retrieve({str(each): str(text) for each, text in queries.items()}, texts, depth)


def _encoder(model: str) -> bi_encoder.BiEncoder:
    return bi_encoder.BiEncoder(parse_settings(bi_encoder.KIND.settings, {"model": model}))


def embedded(texts: Sequence[str], model: str) -> npt.NDArray[np.float32]:
    """Return the (texts, dimensions) embeddings of queries, of length 1, by a packaged bi-encoder.

    Raises UnavailableError if the model or a package is missing.
    """
    encoders = {each.id for each in known_models() if each.encoder}
    packaged = [each.id for each in MODELS if each.id in encoders]
    if model not in packaged:
        raise UnavailableError(
            "The bi-encoder {model} is not a packaged model.",
            remedy="Use one of these: {models}.",
            model=model,
            models=", ".join(packaged),
        )
    queries = pd.Series(list(texts), index=[str(number) for number in range(len(texts))])
    with tempfile.TemporaryDirectory(prefix="rankdash-") as temporary:
        _in_process(Path(temporary), queries, queries[:0], 0, model)
        vectors: npt.NDArray[np.float32] = np.load(Path(temporary) / _VECTORS)
    return vectors


def _apart(queries: pd.Series[str], documents: pd.Series[str], depth: int, model: str) -> Ranking:
    """Run `_by_meaning` in a separate process."""
    require_packages()
    if fitting(model, language_of(queries)) != model:
        raise UnavailableError(
            "The model {model} was not trained for the language of these queries.",
            remedy="Use BM25 instead.",
            model=model,
        )
    with tempfile.TemporaryDirectory(prefix="rankdash-") as temporary:
        folder = Path(temporary)
        _in_process(folder, queries, documents, depth, model)
        ranked = pd.read_parquet(folder / _FOUND)
    return Ranking.from_columns(ranked["query_id"], ranked["doc_id"], ranked["score"])


def _in_process(
    folder: Path, queries: pd.Series[str], documents: pd.Series[str], depth: int, model: str
) -> None:
    """Run `main` in a separate process. Raises UnavailableError if it fails."""
    for texts, name in ((queries, _QUERIES), (documents, _DOCUMENTS)):
        pd.DataFrame({"id": list(texts.index), "text": list(texts)}).to_parquet(folder / name)
    done = subprocess.run(
        [sys.executable, "-m", _MODULE, str(folder), str(depth), model],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": python_path()},
        check=False,
    )
    if done.returncode:
        messages = done.stderr.decode("utf-8", "replace").strip().split("\n")
        raise UnavailableError(
            "The bi-encoder could not retrieve: {reason}",
            remedy="Use BM25 instead.",
            reason=messages[-1][:300] or f"the process ended with exit code {done.returncode}",
        )


def main(arguments: Sequence[str]) -> int:
    folder, depth, model = Path(arguments[0]), int(arguments[1]), arguments[2]
    tables = (pd.read_parquet(folder / name) for name in (_QUERIES, _DOCUMENTS))
    queries, documents = (pd.Series(list(each["text"]), index=each["id"]) for each in tables)
    try:
        if not depth:
            np.save(folder / _VECTORS, _encoder(model).embedded(list(queries)))
            return 0
        _by_meaning(queries, documents, depth, model).frame().to_parquet(folder / _FOUND)
    except RankdashError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
