"""Defaults for a data set: rerankers, their models, number of queries; and which known models fit
it, by facts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import partial
from importlib.util import find_spec
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

from rankdash.core.base.rules import SettingValue
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.measured import TOO_MANY_UNKNOWN
from rankdash.core.rerankers.base import RerankerKind
from rankdash.core.rerankers.catalogue import MANY, KnownModel, loaded
from rankdash.core.rerankers.kinds import bi_encoder, cross_encoder, endpoint
from rankdash.core.rerankers.neural import packaged
from rankdash.core.rerankers.neural.model_files import cached_tokenizer
from rankdash.core.rerankers.neural.packaged import fitting
from rankdash.core.rerankers.neural.tokenizer import Windows, default_tokens, unknown_share
from rankdash.core.value.prices import Load, cost_per_thousand, shipped

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
    queries: number of queries to rerank, all or a sample. models: kind → model.
    """

    rerankers: tuple[str, ...]
    fused: bool
    queries: int
    models: Mapping[str, str] = field(default_factory=dict)


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


# Which known models fit a data set: by facts about models and texts, never by scores on other data.

Obstacle = Literal[
    "", "language", "tokens", "licence", "size", "length", "slow", "unmeasured", "price",
    "unpriced", "modules", "code", "extra", "service", "key", "download", "sends", "other",
]  # fmt: skip
"""Reason why a model is not preselected; "" if it is. Models with the reasons of `FITTING` can be
chosen."""
FITTING: tuple[Obstacle, ...] = ("", "download", "sends", "other")


@dataclass(frozen=True)
class Limits:
    """Limits on the facts of models; None: no limit.

    commercial: only licences without a restriction to non-commercial use. whole: only models that
        read at least 95 % of the documents completely. size: the most parameters.
        pairs_per_second: the least, as measured on this machine. per_thousand: the highest price of
        1,000 searches at a service, in dollars.
    """

    commercial: bool = False
    whole: bool = False
    size: float | None = None
    pairs_per_second: float | None = None
    per_thousand: float | None = None


@dataclass(frozen=True)
class Candidate:
    """Known model, as seen from a data set.

    kind: the reranker that runs it. truncated: share of the documents that are longer than its
    limit; NaN if that is unknown. pairs_per_second: measured on this machine, or None.
    per_thousand: dollars for 1,000 searches at a service, or None. obstacle: why it is not
    preselected. preselected: the model that is, of the same kind; "" if none is.
    """

    model: KnownModel
    kind: str
    truncated: float
    pairs_per_second: float | None
    per_thousand: float | None
    obstacle: Obstacle
    preselected: str = ""


def candidates(
    data: Dataset,
    share: Callable[[str], float],
    limits: Limits = Limits(),
    measured: Callable[[str, str], float | None] = lambda kind, model: None,
    has_key: Callable[[str], bool] = lambda service: False,
    today: date | None = None,
) -> list[Candidate]:
    """Return all known models that exist today: the preselected ones first, and each
    other one with the reason.

    share: as for `preselection`. measured: from kind and model, pairs per second on this machine;
        None if it was not measured. has_key: from a service, whether its key is set.
    """
    day = datetime.now(UTC).date() if today is None else today
    work = Workload.of(data)
    lengths = np.array(work.lengths)
    listed = []
    for model in loaded().models:
        if model.ended(day):
            continue
        kind = kind_of(model)
        over = float((lengths > model.max_length).mean()) if model.max_length else np.nan
        rate = measured(kind.name, model.id)
        price = _per_thousand(model, work)
        each = Candidate(model, kind.name, over, rate, price, "")
        listed.append(
            replace(each, obstacle=_obstacle(each, data.language, share, limits, has_key))
        )
    best = {kind.name: _best(kind, listed, data.language, share) for kind in _KINDS}
    seen = [
        replace(each, obstacle="other", preselected=best[each.kind])
        if not each.obstacle and best[each.kind] != each.model.id
        else each
        for each in listed
    ]
    return sorted(seen, key=lambda each: _ORDER.index(each.obstacle))


def kind_of(model: KnownModel) -> RerankerKind:
    """Return the kind of reranker that runs a known model."""
    if model.service:
        return endpoint.KIND
    return bi_encoder.KIND if model.encoder else cross_encoder.KIND


_ORDER: tuple[Obstacle, ...] = ("", "other", "download", "sends", "key", "length", "size", "slow",
    "unmeasured", "price", "unpriced", "licence", "extra", "modules", "code", "service", "tokens",
    "language")  # fmt: skip
_TOO_LONG = 0.05
_NON_COMMERCIAL = ("-NC", "non-commercial")


def _obstacle(
    each: Candidate,
    language: str,
    share: Callable[[str], float],
    limits: Limits,
    has_key: Callable[[str], bool],
) -> Obstacle:
    """Return the first reason against a model: its texts, then the limits, then this machine."""
    model = each.model
    weights, reads = not model.service, model.reads(language)
    comes_with = packaged.in_use(model.id) if weights else None
    # A tokenizer is slow to load, and one for many languages knows the Latin letters.
    known = not weights or not reads or (language == "latin" and MANY in model.languages)
    unknown = 0.0 if known else share(model.id)
    here = comes_with is not None or (weights and cached_tokenizer(model.id) is not None)
    needed = "sentence_transformers" if comes_with is None else comes_with.top
    limited = limits.per_thousand is not None and not weights
    checks: tuple[tuple[Obstacle, bool], ...] = (
        ("language", not reads),
        ("tokens", unknown > TOO_MANY_UNKNOWN),
        ("licence", limits.commercial and any(x in model.licence for x in _NON_COMMERCIAL)),
        ("size", limits.size is not None and not 0 < model.size <= limits.size),
        ("length", limits.whole and not each.truncated <= _TOO_LONG),
        ("unmeasured", limits.pairs_per_second is not None and each.pairs_per_second is None),
        ("slow", (each.pairs_per_second or np.inf) < (limits.pairs_per_second or 0.0)),
        ("unpriced", limited and each.per_thousand is None),
        ("price", limited and (each.per_thousand or 0.0) > (limits.per_thousand or 0.0)),
        ("modules", model.needs == "modules" and weights),
        ("code", model.needs == "code" and weights),
        ("service", not weights and model.service not in endpoint.DIALECTS),
        ("key", not weights and not has_key(model.service)),
        ("sends", not weights),
        ("extra", find_spec(needed) is None),
        ("download", not here),
    )
    return next((name for name, applies in checks if applies), "")


def _best(
    kind: RerankerKind, listed: list[Candidate], language: str, share: Callable[[str], float]
) -> str:
    """Return the preselected model of a kind: its default if that fits, or else the smallest that
    fits; "" if none does."""
    default = fitting(_default(kind), language, share)
    fits = [each.model for each in listed if each.kind == kind.name and not each.obstacle]
    smallest = min(fits, key=lambda each: (each.id != default, each.size), default=None)
    return "" if smallest is None else smallest.id


def _per_thousand(model: KnownModel, work: Workload) -> float | None:
    """Return the price of 1,000 searches with documents of this length, in dollars; None if it is
    unknown."""
    listed = next((each for each in shipped() if each.key == model.price), None)
    if listed is None or listed.price.currency != "USD" or not len(work.pairs):
        return None
    load = Load(work.query_tokens, float(work.pairs.mean()), float(np.mean(work.lengths)))
    return float(cost_per_thousand(listed.price, load))


def preselection(data: Dataset, share: Callable[[str], float]) -> Preselection:
    """Return the rerankers to start with: installed packaged models that know the tokens of the
    texts, or BM25 without such a model.

    share: from a model, the share in [0, 1] of the texts' tokens that it does not know; NaN if
        unknown.
    """
    fits = {kind.name: fitting(_default(kind), data.language, share) for kind in _KINDS}
    models = {
        kind: model
        for kind, model in fits.items()
        if packaged.in_use(model) and share(model) <= TOO_MANY_UNKNOWN
    }
    chosen, work = tuple(models), Workload.of(data)

    def seconds(queries: int) -> float:
        return sum(work.seconds(kind, queries) or 0.0 for kind in chosen)

    queries = total = len(work.pairs)
    if seconds(total) > ALL_SECONDS:
        most = bisect_right(range(total), SAMPLE_SECONDS, key=seconds) - 1
        queries = min(total, max(LEAST_QUERIES, most // 10 * 10))
    fused = packaged.MULTILINGUAL in models.values()
    return Preselection(chosen or ("bm25",), fused, queries, models)


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
