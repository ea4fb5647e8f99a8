"""The wire formats of rerank services: what is asked, and how an answer is read.

Six fields say how one is spoken to: path, documents, constants, results, index and score. The rest
is what is known of the service: where it listens, what it bills, how many documents it takes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from rankdash.core.rerankers.base import Scores
from rankdash.core.rerankers.remote.keys import HOMES

_NOTHING: Mapping[str, Any] = MappingProxyType({})
Path = tuple[str, ...]


@dataclass(frozen=True)
class Dialect:
    """One service.

    path:      after the base URL.
    documents: the key of the documents.
    wrap:      the key inside which query and each document are put; "" for plain texts.
    constants: sent along with every request.
    results:   where in the answer the list of results is; () for the answer itself.
    index, score: the keys of a result.

    base_url:  where the service listens unless the user says otherwise.
    variable:  the environment variable of its key.
    model:     the model asked for by default; "" where the server serves one model and is not told.
    limit:     how many documents a request may hold.
    billed:    unit → where in the answer its count is.
    """

    name: str
    title: str
    path: str
    base_url: str
    variable: str
    documents: str = "documents"
    wrap: str = ""
    constants: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    results: Path = ("results",)
    index: str = "index"
    score: str = "relevance_score"
    model: str = ""
    limit: int = 1000
    billed: Mapping[str, Path] = field(
        default_factory=lambda: {"tokens": ("usage", "total_tokens")}
    )

    def path_after(self, base_url: str) -> str:
        """The path without what the base URL ends in already, such as /v1."""
        parts = self.path.split("/")[1:]
        for count in range(len(parts), 0, -1):
            start = "/" + "/".join(parts[:count])
            if base_url.endswith(start):
                return self.path[len(start) :]
        return self.path

    def body(self, model: str, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """The request, ready to become JSON."""
        wrapped = [{self.wrap: text} if self.wrap else text for text in documents]
        named = {"model": model} if model else {}
        asked: Any = {self.wrap: query} if self.wrap else query
        return {**named, "query": asked, self.documents: wrapped, **self.constants}

    def read_scores(self, answer: Any, count: int) -> tuple[Scores, str]:
        """The scores of `count` documents, NaN where the answer has none that can be trusted,
        and what is wrong with it; "" where nothing is."""
        scores = np.full(count, np.nan)
        results = dig(answer, self.results)
        if not isinstance(results, list):
            where = ".".join(self.results) or "list"
            return scores, f"The answer is malformed: it has no {where}."
        seen: set[int] = set()
        faults: list[str] = []
        for result in results:
            index = result.get(self.index) if isinstance(result, dict) else None
            score = result.get(self.score) if isinstance(result, dict) else None
            if not isinstance(index, int) or isinstance(index, bool):
                faults.append("a result has no index")
            elif not 0 <= index < count:
                faults.append(f"index {index} is out of range")
            elif index in seen:
                scores[index] = np.nan
                faults.append(f"index {index} comes twice")
            else:
                seen.add(index)
                if _is_number(score):
                    scores[index] = score
                else:
                    faults.append(f"the score of index {index} is not a number")
        missing = int(np.isnan(scores).sum())
        if missing and not faults:
            faults.append("the answer is too short")
        if not faults:
            return scores, ""
        return scores, f"documents with a score: {count - missing} of {count}: {faults[0]}."

    def charged(self, answer: Any) -> Mapping[str, float]:
        """Unit → how many of it the answer says are billed."""
        found = {unit: dig(answer, path) for unit, path in self.billed.items()}
        return {unit: float(count) for unit, count in found.items() if _is_number(count)}


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "cohere",
            "Cohere",
            "/v2/rerank",
            HOMES["COHERE_API_KEY"],
            "COHERE_API_KEY",
            model="rerank-v3.5",
            billed={
                "search_units": ("meta", "billed_units", "search_units"),
                "tokens": ("meta", "tokens", "input_tokens"),
            },
        ),
        Dialect(
            "jina",
            "Jina",
            "/v1/rerank",
            HOMES["JINA_API_KEY"],
            "JINA_API_KEY",
            constants={"return_documents": False},
            model="jina-reranker-v2-base-multilingual",
        ),
        Dialect(
            "voyage",
            "Voyage",
            "/v1/rerank",
            HOMES["VOYAGE_API_KEY"],
            "VOYAGE_API_KEY",
            constants={"truncation": True},
            results=("data",),
            model="rerank-2.5",
        ),
        Dialect(
            "mixedbread",
            "Mixedbread",
            "/v1/reranking",
            HOMES["MXBAI_API_KEY"],
            "MXBAI_API_KEY",
            documents="input",
            constants={"return_input": False},
            results=("data",),
            score="score",
            model="mixedbread-ai/mxbai-rerank-large-v2",
        ),
        Dialect(
            "tei",
            "Text Embeddings Inference (TEI)",
            "/rerank",
            "http://127.0.0.1:8080",
            "TEI_API_KEY",
            documents="texts",
            constants={"truncate": True, "raw_scores": True},
            results=(),
            score="score",
            limit=32,
            billed=_NOTHING,
        ),
        Dialect(
            # No truncate_prompt_tokens: it keeps the end of a text and drops its beginning.
            "vllm",
            "vLLM",
            "/v1/rerank",
            "http://127.0.0.1:8000",
            "VLLM_API_KEY",
            model="BAAI/bge-reranker-v2-m3",
        ),
        Dialect(
            "infinity",
            "Infinity",
            "/rerank",
            "http://127.0.0.1:7997",
            "INFINITY_API_KEY",
            constants={"return_documents": False, "raw_scores": True},
            model="BAAI/bge-reranker-v2-m3",
        ),
        Dialect(
            "nim",
            "NVIDIA NIM",
            "/v1/ranking",
            "http://127.0.0.1:8000",
            "NVIDIA_API_KEY",
            documents="passages",
            wrap="text",
            constants={"truncate": "END"},
            results=("rankings",),
            score="logit",
            model="nvidia/llama-3.2-nv-rerankqa-1b-v2",
            limit=512,
        ),
    )
}


def dig(answer: Any, path: Path) -> Any:
    """What lies at `path` in an answer; None where there is nothing."""
    for key in path:
        if not isinstance(answer, dict):
            return None
        answer = answer.get(key)
    return answer


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
