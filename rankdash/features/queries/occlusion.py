"""Which parts of a text a score depends on, by removing them one at a time (occlusion).

The effect of a part is the score of the complete text minus the score without the part. It is an
approximation: parts with the same meaning replace each other, and a text with a gap is not natural.
Zeiler & Fergus, "Visualizing and Understanding Convolutional Networks" (2014) for images; Li,
Monroe & Jurafsky, "Understanding Neural Networks through Representation Erasure" (2016) for text.

A term is a word with all its places. Text written without spaces (Chinese, Japanese kana) is split
without a dictionary: strings shared with the query are one term, particles end a term, and the rest
is split into pairs of characters.
"""

from __future__ import annotations

import math
import re
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import ScoringError
from rankdash.core.base.rules import SettingValue
from rankdash.core.data.explanation import Explanation, Level, Span, Stage, TextPart
from rankdash.core.rerankers import Corpus, Request, Reranker, RerankerKind, Scored, create, get
from rankdash.core.rerankers.remote import connection
from rankdash.core.runs.jobs import Handover
from rankdash.core.runs.retrieving import without_source
from rankdash.core.runs.runner import Cancelled
from rankdash.core.runs.worker import Claimed
from rankdash.core.workspace import RunRow, Workspace
from rankdash.core.workspace.jobs.leases import ExplanationRow, Explanations, Owner

LEVELS: tuple[Level, ...] = get_args(Level)

# More variants would take too long.
MOST_PARTS = 150
# Text after this many characters stays in every variant and is not examined.
LONGEST_LOOKED_AT = 20_000

_LONGEST_SENTENCE = 400
_LONGEST_SHARED = 8
_UNSPACED = re.compile(
    "[\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003fffd]"
)
_PARTICLES = frozenset("的了是在和与及或吗呢吧啊么之为被把从对于也都就")
_JOINS = frozenset("'’-.")
_SENTENCE_END = re.compile(
    r"(?:[。！？；…]+|(?<![.!?])[.!?]++(?=[\s\"'”’)\]]|$)|\n+)[\"'”’」』）)\]]*\s*"
)


@dataclass(frozen=True)
class TextVariant:
    """A query and a document to score."""

    query: str
    document: str


@dataclass(frozen=True)
class Cost:
    """The number of pairs to score. sure: True if the number is exact, False if it is a maximum.

    by_sentence: True if sentences are tried first because the document has too many terms.
    """

    variants: int
    sure: bool
    by_sentence: bool


def cost(query: str, document: str, level: Level) -> Cost:
    """Return how many pairs `explain` will score: 0 if no part can be removed."""
    first = _first_parts(query, document, level)
    variants = len(_removable(query, document, level, first))
    if not variants:
        return Cost(0, True, False)
    if level != "term" or len(first) <= MOST_PARTS:
        return Cost(1 + variants, True, False)
    by_sentence = sentences(document)
    variants = len(_removable(query, document, "sentence", by_sentence))
    return Cost(1 + variants + MOST_PARTS, False, True)


def explain(
    query: str,
    document: str,
    level: Level,
    score: Callable[[Sequence[TextVariant]], npt.NDArray[np.float64]],
) -> Explanation:
    """Return the effect of each part on the score of a pair.

    score: returns the score of each variant, NaN if scoring failed; called once for each stage.

    Raises ScoringError if the pair itself cannot be scored.
    """
    parts = _first_parts(query, document, level)
    if level != "term" or len(parts) <= MOST_PARTS:
        whole, stage = _stage(query, document, level, parts, score)
        return Explanation(whole, (stage,))
    whole, first = _stage(query, document, "sentence", sentences(document), score)
    chosen = strongest(parts, first)
    _, second = _stage(query, document, "term", chosen, score, whole)
    return Explanation(whole, (first, second))


def strongest(
    terms: Sequence[TextPart], by_sentence: Stage, most: int = MOST_PARTS
) -> list[TextPart]:
    """Return at most `most` terms from the sentences with the largest effects on the score, in the
    order of the text."""
    sizes = np.nan_to_num(np.abs(by_sentence.effects), nan=-1.0)
    chosen: set[int] = set()
    for place in np.argsort(-sizes, kind="stable").tolist():
        (start, end), *_ = by_sentence.parts[place].places
        members = [
            number
            for number, term in enumerate(terms)
            if number not in chosen and any(start <= at < end for at, _ in term.places)
        ]
        if len(chosen) + len(members) > most:
            # The strongest sentence is examined as far as there is room, the others completely or
            # not at all.
            chosen.update(members[: most if not chosen else 0])
            break
        chosen.update(members)
    return [terms[number] for number in sorted(chosen)]


def _stage(
    query: str,
    document: str,
    level: Level,
    parts: Sequence[TextPart],
    score: Callable[[Sequence[TextVariant]], npt.NDArray[np.float64]],
    whole: float = math.nan,
) -> tuple[float, Stage]:
    """Return the score of the pair and the effect of each part on it.

    whole: the score of the pair; NaN to compute it here.
    """
    selected = _removable(query, document, level, parts)
    variants = [_variant(query, document, level, parts[place]) for place in selected]
    is_scored = not math.isnan(whole)
    scores = score(variants if is_scored else [TextVariant(query, document), *variants])
    if not is_scored:
        whole, scores = float(scores[0]), scores[1:]
        if not math.isfinite(whole):
            raise ScoringError(
                "The reranker gave no score for the complete document.",
                remedy="The effect of a part cannot be computed without this score.",
            )
    effects = np.full(len(parts), np.nan)
    effects[selected] = whole - np.asarray(scores, dtype=np.float64)
    return whole, Stage(level, tuple(parts), tuple(effects.tolist()))


def _variant(query: str, document: str, level: Level, part: TextPart) -> TextVariant:
    if level == "query":
        return TextVariant(part.without(query), document)
    return TextVariant(query, part.without(document))


def _removable(query: str, document: str, level: Level, parts: Sequence[TextPart]) -> list[int]:
    """Return the indices of parts that can be removed without an empty text as the result."""
    text = query if level == "query" else document
    return [place for place, part in enumerate(parts) if part.without(text).strip()]


def _first_parts(query: str, document: str, level: Level) -> list[TextPart]:
    if level == "sentence":
        return sentences(document)
    return terms(query, "") if level == "query" else terms(document, query)


def sentences(text: str, most: int = MOST_PARTS) -> list[TextPart]:
    """Return the sentences of the text; if there are more than `most`, neighbours together."""
    pieces = [each for each in sentence_pieces(text) if text[slice(*each)].strip()]
    size = max(1, math.ceil(len(pieces) / most))
    groups = [pieces[at : at + size] for at in range(0, len(pieces), size)]
    return [TextPart(((group[0][0], group[-1][1]),)) for group in groups]


def terms(text: str, query: str) -> list[TextPart]:
    """Return every word of the text once, with all its places, by first appearance. query: strings
    that it shares with a text without spaces are not split."""
    places: dict[str, list[Span]] = {}
    for start, end in word_pieces(text, query):
        word = text[start:end]
        if any(_kind(character) for character in word):
            follows = end
            while follows < len(text) and text[follows].isspace():
                follows += 1
            places.setdefault(_folded(word), []).append((start, follows))
    return [TextPart(tuple(each)) for each in places.values()]


def sentence_pieces(text: str) -> list[Span]:
    """Return consecutive spans of sentences, up to `LONGEST_LOOKED_AT`. A sentence that is too long
    is split at a space."""
    looked_at = text[:LONGEST_LOOKED_AT]
    ends = [match.end() for match in _SENTENCE_END.finditer(looked_at)]
    spans, start = [], 0
    for end in [*ends, len(looked_at)]:
        while end - start > _LONGEST_SENTENCE:
            blank = looked_at.rfind(" ", start + 1, start + _LONGEST_SENTENCE)
            cut = blank + 1 if blank > 0 else start + _LONGEST_SENTENCE
            spans.append((start, cut))
            start = cut
        if end > start:
            spans.append((start, end))
            start = end
    return spans


def word_pieces(text: str, query: str = "") -> list[Span]:
    """Return consecutive spans of words and of the text between them, up to `LONGEST_LOOKED_AT`."""
    looked_at = text[:LONGEST_LOOKED_AT]
    kinds = [_kind(character) for character in looked_at]
    for place in range(1, len(kinds) - 1):
        # Inside of "don't" and "3.5".
        if looked_at[place] in _JOINS and kinds[place - 1] == kinds[place + 1] == "word":
            kinds[place] = "word"
    spans: list[Span] = []
    start = 0
    for place in range(1, len(kinds) + 1):
        if place == len(kinds) or kinds[place] != kinds[start]:
            whole = kinds[start] != "unspaced"
            spans += [(start, place)] if whole else _cut(looked_at, start, place, query)
            start = place
    return spans


def _cut(text: str, start: int, end: int, query: str) -> list[Span]:
    """Return spans of a text without spaces, such as Chinese: strings that the query contains, and
    pairs of characters for the rest."""
    spans: list[Span] = []
    loose = start
    while start < end:
        size = _shared(text, start, end, query)
        if size:
            spans += _by_two(text, loose, start)
            spans.append((start, start + size))
            loose = start + size
        start += size or 1
    return [*spans, *_by_two(text, loose, end)]


def _shared(text: str, start: int, end: int, query: str) -> int:
    """Return the length of the longest string from `start` that the query contains; 0 if below
    2."""
    sizes = range(min(_LONGEST_SHARED, end - start), 1, -1)
    return next((size for size in sizes if text[start : start + size] in query), 0)


def _by_two(text: str, start: int, end: int) -> list[Span]:
    spans = []
    while start < end:
        size = 2
        if text[start] in _PARTICLES or start + 1 == end or text[start + 1] in _PARTICLES:
            size = 1
        spans.append((start, start + size))
        start += size
    return spans


def _kind(character: str) -> Literal["", "word", "unspaced"]:
    """Return the character class: "word", "unspaced", or "" for spaces and punctuation."""
    if character.isalnum():
        return "unspaced" if _UNSPACED.match(character) else "word"
    category = unicodedata.category(character)
    # Accents belong to their word; emoji and currency signs count as words.
    return "word" if category[0] == "M" or category in ("So", "Sc") else ""


def _folded(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold()


# Explanations in a worker: one after the other; the model stays loaded for the next one.

# How long a model stays loaded without a new request.
KEEP_SECONDS = 300.0

# The number of pairs scored between two checks for a stop; for a service, one call.
LOCAL_BATCH, REMOTE_BATCH = 16, 25


def in_calls(
    query_id: str, doc_id: str, variants: Sequence[TextVariant], remote: bool
) -> Iterator[list[Request]]:
    """Yield the variants, in order, in batches of requests that the reranker scores together."""
    size = REMOTE_BATCH if remote else LOCAL_BATCH
    for at in range(0, len(variants), size):
        requests = []
        for query, alike in groupby(variants[at : at + size], key=lambda variant: variant.query):
            texts = [variant.document for variant in alike]
            requests.append(Request(query_id, query, [doc_id] * len(texts), texts))
        yield requests


@dataclass(frozen=True, eq=False)
class _Ready:
    """A prepared reranker with the texts of its data set. used: the last use, by
    `time.monotonic`."""

    run_id: str
    kind: RerankerKind
    reranker: Reranker
    queries: Mapping[str, str]
    documents: Mapping[str, str]
    used: float


class Explainer:
    """Creates explanations in a worker. Used by one thread."""

    def __init__(
        self,
        workspace: Workspace,
        owner: Owner,
        stopping: threading.Event,
        handover: Handover | None = None,
    ) -> None:
        self._workspace = workspace
        self._owner = owner
        self._stopping = stopping
        self._handover = handover or Handover()
        self._rows = Explanations(workspace)
        self._cached: _Ready | None = None

    def serve(self) -> bool:
        """Create the explanation that has waited longest; return False if none is waiting. An error
        ends the explanation, not the worker."""
        self._release()
        row = self._rows.claim(self._owner)
        if row is None:
            return False
        claimed = Claimed(self._rows, row.id, self._owner, self._stopping)
        claimed.carry_out(lambda: {"result": self._explain(row, claimed.has_to_stop).to_json()})
        return True

    def _explain(self, row: ExplanationRow, has_to_stop: Callable[[], bool]) -> Explanation:
        target = row.asked
        run = next((each for each in self._workspace.runs() if each.id == target.run_id), None)
        if run is None:
            raise Cancelled
        kind = get(run.reranker)
        # Complete settings: an older version may have lacked some of them.
        reranker = create(run.reranker, scalars(run.settings))
        with connection.given_keys(
            self._handover.take_for(row.id, kind.key and kind.key(reranker.settings))
        ):
            ready = self._ready(run, kind, reranker, has_to_stop)
            query, document = ready.queries[target.query_id], ready.documents[target.doc_id]
            level = _level(target.level)
            expected_cost = cost(query, document, level)
            work = _Scoring(
                ready,
                (target.query_id, target.doc_id),
                lambda done: self._rows.progress(row.id, self._owner, done, expected_cost.variants),
                has_to_stop,
            )
            explanation = explain(query, document, level, work)
        return replace(explanation, read=work.read, full=work.full)

    def _ready(
        self,
        run: RunRow,
        kind: RerankerKind,
        reranker: Reranker,
        has_to_stop: Callable[[], bool],
    ) -> _Ready:
        """Return the reranker of a run, cached or made ready now. A service is not cached because
        it contains a key."""
        if self._cached is not None and self._cached.run_id == run.id:
            self._cached = replace(self._cached, used=time.monotonic())
            return self._cached
        # One at a time: a model may fill the memory.
        self._cached = None
        data = self._workspace.dataset(run.dataset_id)
        queries, documents = data.query_text(), data.document_text()
        corpus = Corpus(doc_ids=list(documents.index), texts=list(documents))
        if has_to_stop():
            raise Cancelled
        reranker.prepare(corpus)
        ready = _Ready(
            run.id,
            kind,
            reranker,
            {str(query): str(text) for query, text in queries.items()},
            dict(zip(corpus.doc_ids, corpus.texts, strict=True)),
            time.monotonic(),
        )
        if not kind.able(reranker.settings).needs_network:
            self._cached = ready
        return ready

    def _release(self) -> None:
        """Release a model that was not used for `KEEP_SECONDS`."""
        if self._cached is not None and time.monotonic() - self._cached.used > KEEP_SECONDS:
            self._cached = None


@dataclass
class _Scoring:
    """Scores variants in batches; NaN for variants that the reranker refuses.

    on_batch: called with the number of pairs scored. read, full: tokens of the first variant, which
        is the complete pair; None if not reported.

    Raises ScoringError if the first variant fails, and Cancelled.
    """

    ready: _Ready
    pair: tuple[str, str]
    on_batch: Callable[[int], None]
    has_to_stop: Callable[[], bool]
    done: int = 0
    read: int | None = None
    full: int | None = None

    @property
    def _remote(self) -> bool:
        return self.ready.kind.able(self.ready.reranker.settings).needs_network

    def __call__(self, variants: Sequence[TextVariant]) -> npt.NDArray[np.float64]:
        scores = [np.zeros(0)]
        for requests in in_calls(*self.pair, variants, self._remote):
            if self.has_to_stop():
                raise Cancelled
            answers = self._score(requests)
            if not self.done:
                self._read_tokens(answers[0])
            scores += [np.asarray(answer.scores, dtype=np.float64) for answer in answers]
            self.done += sum(len(request.documents) for request in requests)
            self.on_batch(self.done)
        return np.concatenate(scores)

    def _score(self, requests: Sequence[Request]) -> list[Scored]:
        answers = self.ready.reranker.score(requests)
        failed = any(answer.error for answer in answers)
        pairs = sum(len(request.documents) for request in requests)
        if not failed or pairs == 1 or self._remote:
            return answers
        # Individually, so that only the failing requests fail. A second call to a service may cost
        # money.
        return [
            answer
            for request in requests
            for text in request.documents
            for answer in self.ready.reranker.score(
                [replace(request, doc_ids=request.doc_ids[:1], documents=[text])]
            )
        ]

    def _read_tokens(self, whole: Scored) -> None:
        """Read the token counts of the complete pair. Raise ScoringError if it has no score."""
        if not np.isfinite(whole.scores[0]):
            raise ScoringError(
                "The complete document cannot be scored: {reason}.",
                reason=whole.error.rstrip(".") or "the reranker gave no score",
            )
        if whole.tokens is not None:
            self.read = int(whole.tokens[0])
        if whole.full is not None:
            self.full = int(whole.full[0])


def _level(text: str) -> Level:
    return next(level for level in LEVELS if level == text)


def scalars(settings: Mapping[str, object]) -> dict[str, SettingValue]:
    """Return the settings of a stored run from which `create` makes the reranker."""
    return {
        name: value
        for name, value in without_source(settings).items()
        if isinstance(value, str | int | float | bool)
    }
