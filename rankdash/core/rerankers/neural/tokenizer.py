"""Tokenization: texts to token ids, each distinct text once, and the model's special tokens."""

from __future__ import annotations

import importlib.util
import json
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import UnavailableError
from rankdash.core.rerankers.neural import model_files, packaged
from rankdash.core.rerankers.neural.cache import Recent
from rankdash.core.rerankers.neural.model_files import PACKAGED, unreadable, without
from rankdash.core.rerankers.neural.runtimes import Frame, Ids
from rankdash.core.rerankers.remote.connection import text_tokens

# Number of cached tokens: 16 MB.
_KEPT = 2_000_000
# Windows start at least this part of their size apart: more would cost time and memory only.
_CLOSEST = 8
_PROBES = ("refund", "a", "1", "的")


Floats = npt.NDArray[np.float64]


class TokenizerSource(Protocol):
    """Tokenizer of any library."""

    def plain(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text, without truncation and special tokens."""
        ...

    def framed(self, first: str, second: str | None) -> tuple[list[int], list[int]]:
        """Return token ids and token types of one text or a pair, with special tokens."""
        ...

    def unknown(self) -> int | None:
        """Return the id of the unknown token; None if the model can spell any text."""
        ...


class RawTokenizer:
    """Tokenizer of the `tokenizers` library, which needs no PyTorch."""

    def __init__(self, tokenizer: Any) -> None:
        # Files may contain truncation and padding to a fixed length.
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer

    @classmethod
    def from_file(cls, path: Path) -> RawTokenizer:
        from tokenizers import Tokenizer

        try:
            return cls(Tokenizer.from_file(str(path)))
        except Exception as error:
            # The library raises a bare Exception for a broken file.
            raise unreadable(path, error) from error

    def plain(self, texts: Sequence[str]) -> list[list[int]]:
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encoded]

    def framed(self, first: str, second: str | None) -> tuple[list[int], list[int]]:
        encoding = self._tokenizer.encode(first, second)
        return encoding.ids, encoding.type_ids

    def unknown(self) -> int | None:
        model = self._tokenizer.model
        if not hasattr(model, "unk_token"):
            # A Unigram model has an id instead, and only in its file.
            number: int | None = json.loads(self._tokenizer.to_str())["model"].get("unk_id")
            return number
        token = model.unk_token
        token_id: int | None = None if token is None else self._tokenizer.token_to_id(token)
        return token_id


class SlowTokenizer:
    """Tokenizer of transformers, written in Python."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def plain(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        encoded = self._tokenizer(
            list(texts), add_special_tokens=False, truncation=False, padding=False, verbose=False
        )
        return [list(ids) for ids in encoded["input_ids"]]

    def framed(self, first: str, second: str | None) -> tuple[list[int], list[int]]:
        encoded = self._tokenizer(first, second, return_token_type_ids=True)
        return list(encoded["input_ids"]), list(encoded["token_type_ids"])

    def unknown(self) -> int | None:
        token_id: int | None = self._tokenizer.unk_token_id
        return token_id


@dataclass(frozen=True)
class Cut:
    """Token ids of a truncated text. full: its number of tokens before truncation."""

    ids: Ids
    full: int

    def unread(self, parts: Sequence[Ids]) -> int:
        """Return the number of its tokens that no part of `Windows.parts` contains."""
        return self.full - len(parts[0]) if len(parts) == 1 else 0


@dataclass(frozen=True)
class Windows:
    """Windows of a document that is longer than one window, as Dai and Callan (SIGIR 2019) score
    its passages.

    size: tokens of the document in a window; 0: the document is truncated instead.
    stride: tokens from the start of a window to the start of the next; 0: half the window.
    score: the score of the document from the scores of its windows, "max" or "mean".
    """

    size: int = 0
    stride: int = 0
    score: str = "max"

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Windows:
        """Return the windows in the settings of a reranker, which may have none."""
        size, score = int(settings.get("window", 0)), str(settings.get("window_score", "max"))
        return cls(size, int(settings.get("stride", 0)), score) if size else cls()

    def starts(self, length: int, room: int) -> list[int]:
        """Return the starts of the windows of a document of `length` tokens, in order. The last
        window ends with the document, and all windows of a document have the same size.

        room: the most tokens that a window may have.
        """
        size = min(self.size, room)
        if length <= size:
            return [0]
        step = min(max(self.stride or size // 2, size // _CLOSEST, 1), size)
        return [*range(0, length - size, step), length - size]

    def parts(self, text: Cut, room: int, before: Ids, after: Ids) -> list[Ids]:
        """Return the token ids of each window; only one, truncated, without windows.

        room: the most tokens of a part. before, after: the ids of the prompt around the document,
            which every window gets.
        """
        first, last = _shared(text.ids, before), _shared(text.ids[::-1], after[::-1])
        document = text.ids[first : len(text.ids) - last]
        size = min(self.size, room - first - last)
        if size < 1 or len(document) <= size:
            return [text.ids[:room]]
        ends = text.ids[:first], text.ids[len(text.ids) - last :]
        return [
            np.concatenate([ends[0], document[start : start + size], ends[1]])
            for start in self.starts(len(document), size)
        ]

    def joined(self, scores: Floats, counts: Sequence[int]) -> Floats:
        """Return the score of each document. scores: of all windows, in order; counts: number of
        windows of each document, at least 1."""
        if not len(counts):
            return scores
        starts = np.cumsum([0, *counts[:-1]])
        if self.score == "max":
            return np.maximum.reduceat(scores, starts)
        means: Floats = np.add.reduceat(scores, starts) / np.asarray(counts)
        return means


def _shared(ids: Ids, other: Ids) -> int:
    """Return the number of equal tokens at the start of both."""
    size = min(len(ids), len(other))
    return int(np.argmin([*(ids[:size] == other[:size]), False]))


class Subwords:
    """Token ids of texts. Thread-safe, although the tokenizers themselves are not."""

    def __init__(self, source: TokenizerSource, *, pairs: bool) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._kept = Recent[Cut](_KEPT, lambda cut: len(cut.ids) + 1)
        self.frame = _frame(source, pairs=pairs)

    def cut(self, texts: Sequence[str], limit: int) -> list[Cut]:
        """Return the first `limit` tokens of each text, without special tokens.

        limit: the same in every call; recent texts are cached.
        """
        with self._lock:
            cached = self._kept.of(texts)
            fresh = [text for text in dict.fromkeys(texts) if text not in cached]
            tokenized = {
                text: Cut(np.array(ids[:limit], dtype=np.int64), len(ids))
                for text, ids in zip(fresh, self._source.plain(fresh), strict=True)
            }
            self._kept.add(tokenized)
        every = cached | tokenized
        return [every[text] for text in texts]

    def unknown_share(self, texts: Sequence[str]) -> float:
        """Return the share of the tokens of these texts that the model does not know; NaN without
        tokens."""
        with self._lock:
            return _unknown_share(self._source, texts)


def _unknown_share(source: TokenizerSource, texts: Sequence[str]) -> float:
    unknown, token_ids = source.unknown(), source.plain(texts)
    total = sum(map(len, token_ids))
    if not total:
        return math.nan
    return 0.0 if unknown is None else sum(ids.count(unknown) for ids in token_ids) / total


def unknown_share(model: str, texts: Sequence[str]) -> float:
    """Return the share in [0, 1] of the tokens of these texts that the tokenizer of a model does
    not know; NaN if the tokenizer is not on this machine. Loads no model and sends no request.

    model: as in the settings of a reranker.
    """
    try:
        model_files.require_packages()
        packaged_model = packaged.in_use(model)
        file = None if packaged_model else model_files.cached_tokenizer(model)
        if packaged_model is not None:
            source = RawTokenizer(packaged.tokenizer(packaged_model))
        elif file is not None:
            source = RawTokenizer.from_file(file)
        else:
            return math.nan
    except UnavailableError:
        return math.nan
    return _unknown_share(source, [text.encode("utf-8", "replace").decode() for text in texts])


def _frame(source: TokenizerSource, *, pairs: bool) -> Frame:
    """Return the special tokens around texts, by comparing a probe with and without them."""
    for probe in _PROBES:
        (inner,) = source.plain([probe])
        if not inner:
            continue
        ids, types = source.framed(probe, probe if pairs else None)
        starts = [place for place in range(len(ids)) if ids[place : place + len(inner)] == inner][
            : 2 if pairs else 1
        ]
        if len(starts) == (2 if pairs else 1):
            return _taken_apart(ids, types, starts, len(inner))
    raise UnavailableError(
        "The model's tokenizer joins texts in an unsupported way.",
        remedy="Choose another model.",
    )


def _taken_apart(ids: list[int], types: list[int], starts: list[int], size: int) -> Frame:
    first, second = starts[0], starts[-1]
    end = second + size
    kinds = [types[0], types[first]]
    if len(starts) == 2:
        kinds += [types[min(first + size, second)], types[second]]
    kinds.append(types[-1])
    between = tuple(ids[first + size : second]) if len(starts) == 2 else ()
    return Frame(tuple(ids[:first]), between, tuple(ids[end:]), tuple(kinds))


_from_file = cache(RawTokenizer.from_file)


def _default() -> RawTokenizer:
    packaged_model = packaged.named(PACKAGED)
    if packaged_model is None or importlib.util.find_spec("tokenizers") is None:
        raise without(["tokenizers"])
    return _from_file(packaged.source_of(packaged_model) / "tokenizer.json")


def default_tokens(texts: Sequence[str]) -> list[float]:
    """Return the number of tokens of each text in the packaged model, without truncation and
    special tokens; an estimate from characters if that model is not installed.

    Other models split the same text differently, so results based on it are estimates. Loads no
    model.
    """
    try:
        tokenizer = _default()
    except UnavailableError:
        return [text_tokens(text) for text in texts]
    return [float(len(ids)) for ids in tokenizer.plain(texts)]


LONGEST = 131_072
"""Upper limit of tokens, above the limit of every supported model; some tokenizers declare 10^30
for "no limit"."""


def readable(text: str) -> str:
    """Return the text with lone surrogates, which tokenizers refuse, replaced by "?"."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def around(prompt: str) -> tuple[str, str]:
    """Split a prompt into the texts before and after "{text}"; without it, the text comes last."""
    before, _, after = prompt.partition("{text}")
    return readable(before), readable(after)


def prompted(prompt: str, text: str) -> str:
    """Return a text with its prompt, without lone surrogates."""
    before, after = around(prompt)
    return before + readable(text) + after
