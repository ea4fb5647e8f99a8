"""Cross-encoder: a model reads query and document together and gives the pair one score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rankdash.errors import ScoringError, UnavailableError
from rankdash.rerankers import model_files, neural
from rankdash.rerankers.base import Capabilities, Corpus, Request, RerankerKind, Scored, Scores
from rankdash.rerankers.settings import SettingSpec

# A query so long that it would leave the document fewer tokens than this (or than a quarter, for
# models that read little) is cut to leave them.
_DOCUMENT_TOKENS = 16


class CrossEncoder:
    """Raw logits of a sequence-classification model with one output.

    Never a sigmoid of them: a saturated one makes ties, which fall back to the input order. Where a
    pair is too long the document is cut, not the query.
    """

    name = "cross-encoder"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self._model: Any = None
        self._limit = 0
        self._special = 0

    def prepare(self, corpus: Corpus) -> None:
        """Load the model. Raises UnavailableError, within seconds where the hub is needed."""
        model = str(self.settings["model"])
        folder = model_files.locate(model, "cross-encoder")
        found = model_files.architecture(folder)
        if not found.endswith("ForSequenceClassification"):
            raise UnavailableError(
                "The model {model!r} is not a cross-encoder: its architecture is {found}, not one "
                "for sequence classification.",
                remedy="Use a cross-encoder, such as {example}; models that only embed texts work "
                "with the reranker bi-encoder.",
                model=model,
                found=found or "not given",
                example=_DEFAULT_MODEL,
            )
        self._model = neural.load("CrossEncoder", folder, self.settings)
        if self._model.num_labels != 1:
            raise UnavailableError(
                "The model {model!r} gives {count} scores for each pair, one for each class; a "
                "reranker gives one.",
                remedy="Use a model with one output, such as {example}.",
                model=model,
                count=self._model.num_labels,
                example=_DEFAULT_MODEL,
            )
        untrained = self._heads() - model_files.weight_names(folder)
        if untrained:
            raise UnavailableError(
                "The model {model!r} was never trained to score pairs: its files lack {weight}.",
                remedy="Use a model with a trained output, such as {example}.",
                model=model,
                weight=min(untrained),
                example=_DEFAULT_MODEL,
            )
        self._limit = neural.limit_length(self._model, self.settings["max_length"]) or 0
        self._special = self._model.tokenizer.num_special_tokens_to_add(pair=True)

    def fingerprint(self) -> str:
        """None yet."""
        return ""

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """Logits; a query whose scores are not finite fails."""
        if self._model is None:
            raise ScoringError("No model is loaded yet: prepare() comes first.")
        return neural.answer_each(requests, self._score)

    def _score(self, requests: Sequence[Request]) -> list[Scored]:
        queries = [neural.readable(request.query) for request in requests]
        texts = [neural.readable(text) for request in requests for text in request.documents]
        sizes = [len(request.documents) for request in requests]
        owner = np.repeat(np.arange(len(requests)), sizes)
        query_lengths = self._count(queries)
        room = self._limit - self._special - min(_DOCUMENT_TOKENS, self._limit // 4)
        fitting = [
            self._shortened(query, room) if length > room else query
            for query, length in zip(queries, query_lengths, strict=True)
        ]
        document_lengths = self._count(texts) + self._special
        lengths = np.minimum(query_lengths, room)[owner] + document_lengths
        pairs = [(fitting[place], text) for place, text in zip(owner, texts, strict=True)]
        scores = self._logits(pairs, lengths)
        full = query_lengths[owner] + document_lengths
        read = np.minimum(lengths, self._limit)
        bounds = np.cumsum([0, *sizes])
        return [
            neural.checked(scores[start:stop], read[start:stop], full[start:stop], 0.0)
            for start, stop in pairwise(bounds)
        ]

    def _heads(self) -> set[str]:
        """Names of the weights that give the score; where a file lacks them they are random."""
        import torch

        return {
            f"{name}.weight"
            for name, part in self._model.model.named_modules()
            if isinstance(part, torch.nn.Linear) and part.out_features == 1
        }

    def _logits(self, pairs: list[tuple[str, str]], lengths: neural.Lengths) -> Scores:
        import torch

        scores = np.zeros(len(pairs))
        for places in neural.batches(lengths, self.settings["batch_size"]):
            scores[places] = self._model.predict(
                [pairs[place] for place in places],
                batch_size=len(places),
                show_progress_bar=False,
                activation_fn=torch.nn.Identity(),
                processing_kwargs={"text": {"truncation": "only_second"}},
            )
        return scores

    def _count(self, texts: list[str]) -> neural.Lengths:
        """Tokens of each text, uncut and without special tokens; repeats are counted once."""
        distinct = list(dict.fromkeys(texts))
        counts = neural.token_counts(self._model.tokenizer, distinct, special=False)
        known = dict(zip(distinct, counts.tolist(), strict=True))
        return np.array([known[text] for text in texts], dtype=np.int64)

    def _shortened(self, query: str, room: int) -> str:
        """The first `room` tokens of a query, as text."""
        tokenizer = self._model.tokenizer
        ids = tokenizer(query, add_special_tokens=False, verbose=False)["input_ids"]
        text: str = tokenizer.decode(ids[:room])
        return text


_DEFAULT_MODEL = "cross-encoder/ms-marco-MiniLM-L6-v2"

KIND = RerankerKind(
    name=CrossEncoder.name,
    title="Cross-encoder",
    meaning="Reads query and document together and scores the pair: usually the best order, and "
    "the slowest, as nothing can be computed beforehand.",
    settings=(
        SettingSpec(
            "model",
            str,
            _DEFAULT_MODEL,
            "Model",
            "A cross-encoder such as BAAI/bge-reranker-v2-m3: a name on the Hugging Face hub, "
            "fetched once, or a local folder.",
            required=True,
        ),
        neural.BATCH_SIZE,
        SettingSpec(
            "max_length",
            int,
            512,
            "Longest pair in tokens",
            "Documents are cut to fit, and counted; the query is not. 0: what the model "
            "declares; never more than it can read.",
            minimum=0,
            maximum=neural.LONGEST,
        ),
        neural.DTYPE,
        neural.DEVICE,
    ),
    capabilities=Capabilities(),
    build=CrossEncoder,
)
