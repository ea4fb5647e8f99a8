"""What a reranker is: the requests it gets, the answers it gives, and what it can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from rankdash.rerankers.settings import SettingSpec, SettingValue

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Capabilities:
    """What a kind of reranker needs and promises.

    scope: "pointwise" when a document's score does not depend on the other documents of the
        request, "listwise" when it does.
    needs_text: whether documents without text cannot be scored.
    needs_network: whether scoring calls another machine.
    deterministic: whether the same request gets the same scores twice.
    order_sensitive: whether the order in which documents are given changes their scores.
    """

    scope: Literal["pointwise", "listwise"] = "pointwise"
    needs_text: bool = True
    needs_network: bool = False
    deterministic: bool = True
    order_sensitive: bool = False


@dataclass(frozen=True)
class Corpus:
    """The documents of the whole data set, for statistics. `doc_ids` and `texts` are parallel."""

    doc_ids: Sequence[str]
    texts: Sequence[str]


@dataclass(frozen=True)
class Request:
    """One query and its candidates in first-stage order; `documents` is parallel to `doc_ids`."""

    query_id: str
    query: str
    doc_ids: Sequence[str]
    documents: Sequence[str]


@dataclass(frozen=True, eq=False)
class Scored:
    """The answer to one request, aligned with its documents and never re-ordered.

    scores:        (n,) float64, raw (logits or similarities); NaN = not scored.
    tokens:        (n,) int64, how many tokens of query and document a model read for each pair;
                   None where the kind does not read tokens.
    truncated:     (n,) bool, whether a text of the pair was cut to fit the model; None as above.
    index_seconds: time spent on what a search system does beforehand, such as embedding documents.
    error:         why the query failed; "" when it did not. A failed query has only NaN scores.
    """

    scores: Scores
    tokens: npt.NDArray[np.int64] | None = None
    truncated: npt.NDArray[np.bool_] | None = None
    index_seconds: float = 0.0
    error: str = ""

    @classmethod
    def failed(cls, size: int, error: str) -> Scored:
        """The answer to a request of `size` documents that could not be scored."""
        return cls(np.full(size, np.nan), error=error)


class Reranker(Protocol):
    """Scores documents for queries. Made by `rankdash.rerankers.create`."""

    @property
    def name(self) -> str:
        """The name of its kind."""
        ...

    @property
    def settings(self) -> Mapping[str, SettingValue]:
        """Every setting of the kind with the value in force."""
        ...

    def prepare(self, corpus: Corpus) -> None:
        """Load the model or build the statistics; call once, before `score`.

        Raises UnavailableError, with what to do about it, where a model or a package is missing.
        """
        ...

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """One answer per request, in the order of the requests."""
        ...


@dataclass(frozen=True)
class RerankerKind:
    """One entry of the registry. `build` takes the complete, checked settings."""

    name: str
    title: str
    meaning: str
    settings: tuple[SettingSpec, ...]
    capabilities: Capabilities
    build: Callable[[Mapping[str, Any]], Reranker]
