"""Cross-encoder: a model reads query and document together and computes one score per pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rankdash.core.base.errors import UnavailableError
from rankdash.core.base.rules import SettingSpec
from rankdash.core.rerankers.base import Capabilities, Request, RerankerKind, Scored, Scores
from rankdash.core.rerankers.catalogue import known_models
from rankdash.core.rerankers.neural import model_files, packaged, shared
from rankdash.core.rerankers.neural.open_model import open_model
from rankdash.core.rerankers.neural.runtimes import Ids, Runtime
from rankdash.core.rerankers.neural.tokenizer import LONGEST, around, prompted, readable

_DEFAULT_MODEL = "packaged/ms-marco-MiniLM-L12-v2"

# A long query is truncated if it would leave the document fewer tokens than this (or than a quarter
# of the limit, for models with a small one).
_DOCUMENT_TOKENS = 16


class CrossEncoder(shared.NeuralReranker):
    """Raw logits of a sequence-classification model with one output.

    No sigmoid is applied: a saturated one makes ties, which fall back to the input order. If a pair
    is too long, the document is truncated, not the query. `score` fills its batches across all
    requests of a call.
    """

    name = organization = "cross-encoder"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(packaged.with_prompts(settings))

    @staticmethod
    def refuse_others(model: str, folder: Path) -> None:
        """Raise UnavailableError for a model that does not score pairs."""
        architecture = model_files.architecture(folder)
        if not architecture.endswith("ForSequenceClassification"):
            raise UnavailableError(
                "The model {model!r} is not a cross-encoder: its architecture is {found}, not one "
                "for sequence classification.",
                remedy="Use a cross-encoder, such as {example}; models that only embed texts work "
                "with the reranker bi-encoder.",
                model=model,
                found=architecture or "not given",
                example=_DEFAULT_MODEL,
            )

    def _open(self, folder: Path, weights: str) -> object:
        self._opened = open_model(
            "pair", folder, weights, self.settings, lambda model: self._check(model, folder)
        )
        self._more = {"activation": model_files.activation(folder)}
        return self._opened.limit

    def _check(self, model: Any, folder: Path) -> None:
        if model.num_labels != 1:
            raise UnavailableError(
                "The model {model!r} returns {count} scores per pair, one per class; a reranker "
                "needs one.",
                remedy="Use a model with one output, such as {example}.",
                model=self.settings["model"],
                count=model.num_labels,
                example=_DEFAULT_MODEL,
            )
        untrained = _heads(model) - model_files.weight_names(folder)
        if untrained:
            raise UnavailableError(
                "The model {model!r} was never trained to score pairs: its files lack {weight}.",
                remedy="Use a model with a trained output, such as {example}.",
                model=self.settings["model"],
                weight=min(untrained),
                example=_DEFAULT_MODEL,
            )

    def _score(self, requests: Sequence[Request]) -> list[Scored]:
        rows, types, counts, unread = self._rows(requests)
        scores = self._computed(rows, types, counts, None)
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        ends = np.cumsum([0, *counts])
        read = np.diff(np.cumsum([0, *lengths])[ends])
        full = read + unread
        answers = [
            shared.checked(scores[start:stop], read[start:stop], full[start:stop], 0.0)
            for start, stop in _bounds(requests)
        ]
        for request, answer in zip(requests, answers, strict=True):
            self._sample.add(request, answer.scores)
        return answers

    def _anew(self, request: Request, runtime: Runtime) -> Scores:
        rows, types, counts, _ = self._rows([request])
        return self._computed(rows, types, counts, runtime)

    def _computed(
        self, rows: list[Ids], types: list[Ids], counts: list[int], runtime: Runtime | None
    ) -> Scores:
        if self._opened is None or not rows:
            return np.zeros(0)
        scores = self._opened.compute(rows, types, runtime)[:, 0].astype(np.float64)
        return self._opened.windows.joined(scores, counts)

    def _rows(
        self, requests: Sequence[Request]
    ) -> tuple[list[Ids], list[Ids], list[int], shared.Lengths]:
        """Return token ids and types of every row, and for every pair its number of rows and of
        tokens that no row contains."""
        opened = self._opened
        if opened is None:
            return [], [], [], np.zeros(0, dtype=np.int64)
        before, after = around(self._prompts["document"])
        queries = opened.cut(
            [prompted(self._prompts["query"], request.query) for request in requests]
        )
        documents = opened.cut(
            [before + readable(text) for request in requests for text in request.documents]
        )
        opening, closing = (cut.ids for cut in opened.cut([before, after]))
        free = opened.limit - opened.subwords.frame.size - len(closing)
        room = max(1, free - min(_DOCUMENT_TOKENS, opened.limit // 4))
        rows, types, counts, unread = [], [], [], []
        owner = np.repeat(
            np.arange(len(requests)), [len(request.documents) for request in requests]
        )
        for place, document in zip(owner, documents, strict=True):
            query = queries[place]
            asking = query.ids[:room]
            parts = opened.windows.parts(
                document, max(0, free - len(asking)), opening, np.zeros(0, dtype=np.int64)
            )
            for part in parts:
                ids, kinds = opened.subwords.frame.around(
                    [asking, np.concatenate([part, closing]) if len(closing) else part]
                )
                rows.append(ids)
                types.append(kinds)
            counts.append(len(parts))
            unread.append(document.unread(parts) + query.full - len(asking))
        return rows, types, counts, np.array(unread, dtype=np.int64)


def _bounds(requests: Sequence[Request]) -> list[tuple[int, int]]:
    ends = np.cumsum([0, *(len(request.documents) for request in requests)])
    return [(int(start), int(stop)) for start, stop in pairwise(ends)]


def _heads(model: Any) -> set[str]:
    """Return the names of the weights that compute the score; they are random if a file lacks
    them."""
    import torch

    return {
        f"{name}.weight"
        for name, part in model.model.named_modules()
        if isinstance(part, torch.nn.Linear) and part.out_features == 1
    }


KIND = RerankerKind(
    name=CrossEncoder.name,
    title="Cross-encoder",
    meaning="Reads query and document together and scores the pair. Usually the best order, but "
    "the slowest: nothing can be computed beforehand.",
    settings=(
        SettingSpec(
            "model",
            _DEFAULT_MODEL,
            "Model",
            "A cross-encoder such as BAAI/bge-reranker-v2-m3: a name on the Hugging Face hub, "
            "downloaded once, or a local folder. The default comes with rankdash and needs no "
            "network.",
            required=True,
            suggestions=tuple(
                each.id for each in known_models() if not each.encoder and not each.needs
            ),
        ),
        shared.RUNTIME,
        SettingSpec(
            "max_length",
            512,
            "Max pair length (tokens)",
            "In tokens. Longer documents are truncated and counted; the query is not truncated. "
            "Limited by the model's maximum.",
            within=(0, LONGEST),
        ),
        shared.QUERY_PROMPT,
        shared.DOCUMENT_PROMPT,
        shared.DEVICE,
        shared.BATCH_TOKENS,
        *shared.WINDOWS,
    ),
    capabilities=Capabilities(across_queries=True),
    build=CrossEncoder,
    check=CrossEncoder.check,
    models=True,
)
