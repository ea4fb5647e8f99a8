"""Defaults for a data set: rerankers, their models, number of queries."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from rankdash.core.base.rules import SettingValue
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.measured import TOO_MANY_UNKNOWN
from rankdash.core.rerankers.base import RerankerKind
from rankdash.core.rerankers.kinds import bi_encoder, cross_encoder
from rankdash.core.rerankers.neural import packaged
from rankdash.core.rerankers.neural.packaged import fitting
from rankdash.core.rerankers.neural.tokenizer import Windows, default_tokens, unknown_share

# Time limits: all queries if they fit in the first, else a sample that fits in the second.
ALL_SECONDS, SAMPLE_SECONDS = 180.0, 90.0
LEAST_QUERIES = 30
_TEXTS = 100
# Measured with a packaged model of 12 layers in 32-bit ONNX Runtime on two cores of an AMD Zen 5.
_TOKENS_PER_SECOND = 3600.0
_LONGEST = 512.0
_KINDS = (bi_encoder.KIND, cross_encoder.KIND)


@dataclass(frozen=True)
class Preselection:
    """Default choice for a data set.

    rerankers: names of kinds. fused: whether each run is also fused with the first stage.
    queries: number of queries to rerank, all or a sample.
    """

    rerankers: tuple[str, ...]
    fused: bool
    queries: int


@dataclass(frozen=True)
class Workload:
    """Size of a data set for a model. pairs: number of first-stage candidates of each query.
    documents: number of distinct documents. query_tokens: mean. lengths: tokens of each document of
    a sample."""

    pairs: npt.NDArray[np.int64]
    documents: int
    query_tokens: float
    lengths: Sequence[float]

    @classmethod
    def of(cls, data: Dataset) -> Workload:
        queries, documents = _sample(data)
        query_tokens = float(np.minimum(default_tokens(queries or [""]), _LONGEST).mean())
        pairs = np.diff(data.candidates.offsets)
        return cls(pairs, len(data.documents), query_tokens, default_tokens(documents or [""]))

    def seconds(
        self,
        kind: str,
        queries: int,
        depth: int | None = None,
        settings: Mapping[str, SettingValue] = MappingProxyType({}),
    ) -> float | None:
        """Return the approximate time of a packaged model on two CPU cores, without loading; None
        for a kind with unpredictable speed."""
        windows = Windows.of(settings)
        deep = self.pairs if depth is None else np.minimum(self.pairs, depth)
        pairs = float(deep.mean()) * queries if len(deep) else 0.0
        if kind == cross_encoder.KIND.name:
            tokens = pairs * self._tokens(windows, self.query_tokens)
        elif kind == bi_encoder.KIND.name:
            # Each document is encoded once.
            documents = min(pairs, float(self.documents))
            tokens = documents * self._tokens(windows, 0) + queries * self.query_tokens
        else:
            return None
        return tokens / _TOKENS_PER_SECOND

    def _tokens(self, windows: Windows, query: float) -> float:
        """Return the mean number of tokens that a model reads for a document, with the tokens of a
        query before each of its windows."""
        if not windows.size:
            return min(query + float(np.minimum(self.lengths, _LONGEST).mean()), _LONGEST)
        room = int(_LONGEST - min(query, _LONGEST / 2))
        size = min(windows.size, room)
        counts = [len(windows.starts(int(length), room)) for length in self.lengths]
        read = [
            length if count == 1 else size * count
            for length, count in zip(self.lengths, counts, strict=True)
        ]
        return float(np.mean(read) + query * np.mean(counts))


def sample_texts(data: Dataset) -> list[str]:
    """Return up to 100 queries and 100 documents, evenly spread over the data set."""
    queries, documents = _sample(data)
    return queries + documents


def preselection(data: Dataset, share: Callable[[str], float]) -> Preselection:
    """Return the rerankers to start with: installed packaged models that know the tokens of the
    texts, or BM25 without such a model.

    share: from a model, the share in [0, 1] of the texts' tokens that it does not know; NaN if
        unknown.
    """
    models = {kind.name: fitting(_default(kind), data.language, share) for kind in _KINDS}
    chosen = tuple(
        kind
        for kind, model in models.items()
        if packaged.in_use(model) and share(model) <= TOO_MANY_UNKNOWN
    )
    work = Workload.of(data)

    def seconds(queries: int) -> float:
        return sum(work.seconds(kind, queries) or 0.0 for kind in chosen)

    queries = total = len(work.pairs)
    if seconds(total) > ALL_SECONDS:
        most = bisect_right(range(total), SAMPLE_SECONDS, key=seconds) - 1
        queries = min(total, max(LEAST_QUERIES, most // 10 * 10))
    return Preselection(
        chosen or ("bm25",), packaged.MULTILINGUAL in map(models.get, chosen), queries
    )


def with_model(
    kind: RerankerKind, settings: Mapping[str, SettingValue], data: Dataset
) -> dict[str, SettingValue]:
    """Return the settings of a reranker. If they lack a model, add a model that supports the
    language of the texts."""
    default = _default(kind)
    if not kind.models or not default or "model" in settings:
        return dict(settings)
    share = partial(unknown_share, texts=sample_texts(data))
    return {**settings, "model": fitting(default, data.language, share)}


def _default(kind: RerankerKind) -> str:
    return next((str(spec.default) for spec in kind.settings if spec.name == "model"), "")


def _sample(data: Dataset) -> tuple[list[str], list[str]]:
    queries = data.query_text()
    return (
        list(queries.iloc[_spread(len(queries))]),
        list(data.document_text(_spread(len(data.documents)))),
    )


def _spread(count: int) -> npt.NDArray[np.intp]:
    """Return the positions of up to 100 of `count` rows."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, _TEXTS)).astype(np.intp))
