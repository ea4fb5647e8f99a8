"""Which parts of a text a score depends on, by removing them one at a time (occlusion).

The effect of a part is the score of the whole less the score without it. It is an approximation:
parts that say the same cover for each other, and what is left is no natural text. Zeiler & Fergus,
"Visualizing and Understanding Convolutional Networks" (2014) for images; Li, Monroe & Jurafsky,
"Understanding Neural Networks through Representation Erasure" (2016) for text.

A term is a word with all its places. Text written without blanks (Chinese, Japanese kana) is cut
without a dictionary: what it shares with the query stays together, particles end a piece, and the
rest goes by two characters.
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
from rankdash.core.runs.runner import Cancelled
from rankdash.core.runs.worker import Claimed
from rankdash.core.workspace import RunRow, Workspace
from rankdash.core.workspace.jobs.leases import ExplanationRow, Explanations, Owner

LEVELS: tuple[Level, ...] = get_args(Level)

# More variants than this take too long to wait for.
MOST_PARTS = 150
# What comes later stays in every variant and is not judged.
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
    """A pair to be scored."""

    query: str
    document: str


@dataclass(frozen=True)
class Cost:
    """How many pairs are to be scored. sure: whether it is known, or the most that it may be.

    by_sentence: whether sentences come first, because the document has too many terms.
    """

    variants: int
    sure: bool
    by_sentence: bool


def cost(query: str, document: str, level: Level) -> Cost:
    """What `explain` will ask for; without a part to leave out, nothing."""
    first = _first_parts(query, document, level)
    variants = len(_askable(query, document, level, first))
    if not variants:
        return Cost(0, True, False)
    if level != "term" or len(first) <= MOST_PARTS:
        return Cost(1 + variants, True, False)
    by_sentence = sentences(document)
    variants = len(_askable(query, document, "sentence", by_sentence))
    return Cost(1 + variants + MOST_PARTS, False, True)


def explain(
    query: str,
    document: str,
    level: Level,
    score: Callable[[Sequence[TextVariant]], npt.NDArray[np.float64]],
) -> Explanation:
    """Score the pair and its variants.

    score: the score of each variant, NaN where it failed; called once for each stage.

    Raises ScoringError where the pair itself cannot be scored.
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
    """The terms of the sentences with the largest effects, as many as there is room for, in the
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
            # The strongest sentence is judged as far as there is room, the others whole or not.
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
    """The score of the pair, which is asked for where it is not known yet, and the effects."""
    selected = _askable(query, document, level, parts)
    variants = [_variant(query, document, level, parts[place]) for place in selected]
    known = not math.isnan(whole)
    scores = score(variants if known else [TextVariant(query, document), *variants])
    if not known:
        whole, scores = float(scores[0]), scores[1:]
        if not math.isfinite(whole):
            raise ScoringError(
                "The reranker gave no score for the complete document.",
                remedy="It is needed to compare anything.",
            )
    effects = np.full(len(parts), np.nan)
    effects[selected] = whole - np.asarray(scores, dtype=np.float64)
    return whole, Stage(level, tuple(parts), tuple(effects.tolist()))


def _variant(query: str, document: str, level: Level, part: TextPart) -> TextVariant:
    if level == "query":
        return TextVariant(part.without(query), document)
    return TextVariant(query, part.without(document))


def _askable(query: str, document: str, level: Level, parts: Sequence[TextPart]) -> list[int]:
    """The parts without which a text is left: a reranker has no score for nothing."""
    text = query if level == "query" else document
    return [place for place, part in enumerate(parts) if part.without(text).strip()]


def _first_parts(query: str, document: str, level: Level) -> list[TextPart]:
    if level == "sentence":
        return sentences(document)
    return terms(query, "") if level == "query" else terms(document, query)


def sentences(text: str, most: int = MOST_PARTS) -> list[TextPart]:
    """The sentences of the text; neighbours together where there are more than `most`."""
    pieces = [each for each in sentence_pieces(text) if text[slice(*each)].strip()]
    size = max(1, math.ceil(len(pieces) / most))
    groups = [pieces[at : at + size] for at in range(0, len(pieces), size)]
    return [TextPart(((group[0][0], group[-1][1]),)) for group in groups]


def terms(text: str, query: str) -> list[TextPart]:
    """Every word of the text once, with all its places, by first appearance. query: what it shares
    with a text that has no blanks is kept together."""
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
    """Where the sentences are: spans one after the other, up to `LONGEST_LOOKED_AT`. What is too
    long for a sentence is cut at a blank."""
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
    """Words and what is between them: spans one after the other, up to `LONGEST_LOOKED_AT`."""
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
    """A stretch without blanks, in pieces: shared with the query, else two characters."""
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
    """How many characters from `start`, two or more, the query has too."""
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
    """ "" for blanks and punctuation."""
    if character.isalnum():
        return "unspaced" if _UNSPACED.match(character) else "word"
    category = unicodedata.category(character)
    # Accents belong to their word, emoji and currencies stand for one.
    return "word" if category[0] == "M" or category in ("So", "Sc") else ""


def _folded(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold()


# Explanations as a worker makes them: one after the other, with one model kept for the next.

# How long a model waits for the next question.
KEEP_SECONDS = 300.0

# How many pairs are scored between two looks at whether to stop; for a service, one call.
LOCAL_BATCH, REMOTE_BATCH = 16, 25


def in_calls(
    query_id: str, doc_id: str, variants: Sequence[TextVariant], remote: bool
) -> Iterator[list[Request]]:
    """The variants, in order, as the requests that are put to a reranker together."""
    size = REMOTE_BATCH if remote else LOCAL_BATCH
    for at in range(0, len(variants), size):
        requests = []
        for query, alike in groupby(variants[at : at + size], key=lambda variant: variant.query):
            texts = [variant.document for variant in alike]
            requests.append(Request(query_id, query, [doc_id] * len(texts), texts))
        yield requests


@dataclass(frozen=True, eq=False)
class _Held:
    """A reranker that is ready, and the texts of its data set. used: by `time.monotonic`."""

    run_id: str
    kind: RerankerKind
    reranker: Reranker
    queries: Mapping[str, str]
    documents: Mapping[str, str]
    used: float


class Explainer:
    """Makes explanations for a worker. Used by one thread."""

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
        self._held: _Held | None = None

    def serve(self) -> bool:
        """Make the explanation that has waited longest; False where none waits. Errors end the
        explanation, not the worker."""
        self._let_go()
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
        # Complete settings: an older version may not have known them all.
        reranker = create(run.reranker, scalars(run.settings))
        with connection.given_keys(
            self._handover.take_for(row.id, kind.key and kind.key(reranker.settings))
        ):
            held = self._ready(run, kind, reranker, has_to_stop)
            query, document = held.queries[target.query_id], held.documents[target.doc_id]
            level = _level(target.level)
            expected_cost = cost(query, document, level)
            work = _Scoring(
                held,
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
    ) -> _Held:
        """The reranker of a run, kept from before or made ready now. Not that of a service: it
        holds a key."""
        if self._held is not None and self._held.run_id == run.id:
            self._held = replace(self._held, used=time.monotonic())
            return self._held
        # Not two at once: a model may fill the memory.
        self._held = None
        data = self._workspace.dataset(run.dataset_id)
        queries, documents = data.query_text(), data.document_text()
        corpus = Corpus(doc_ids=list(documents.index), texts=list(documents))
        if has_to_stop():
            raise Cancelled
        reranker.prepare(corpus)
        held = _Held(
            run.id,
            kind,
            reranker,
            {str(query): str(text) for query, text in queries.items()},
            dict(zip(corpus.doc_ids, corpus.texts, strict=True)),
            time.monotonic(),
        )
        if not kind.able(reranker.settings).needs_network:
            self._held = held
        return held

    def _let_go(self) -> None:
        """Forget a model that no one has asked for a while."""
        if self._held is not None and time.monotonic() - self._held.used > KEEP_SECONDS:
            self._held = None


@dataclass
class _Scoring:
    """Scores variants in batches; what the reranker refuses is NaN.

    on_batch: called with the number of pairs scored. read, full: tokens of the first variant, which
        is the whole pair; None where not told.

    Raises ScoringError where the first variant fails, and Cancelled.
    """

    held: _Held
    pair: tuple[str, str]
    on_batch: Callable[[int], None]
    has_to_stop: Callable[[], bool]
    done: int = 0
    read: int | None = None
    full: int | None = None

    @property
    def _remote(self) -> bool:
        return self.held.kind.able(self.held.reranker.settings).needs_network

    def __call__(self, variants: Sequence[TextVariant]) -> npt.NDArray[np.float64]:
        scores = [np.zeros(0)]
        for requests in in_calls(*self.pair, variants, self._remote):
            if self.has_to_stop():
                raise Cancelled
            answers = self._ask(requests)
            if not self.done:
                self._look_at(answers[0])
            scores += [np.asarray(answer.scores, dtype=np.float64) for answer in answers]
            self.done += sum(len(request.documents) for request in requests)
            self.on_batch(self.done)
        return np.concatenate(scores)

    def _ask(self, requests: Sequence[Request]) -> list[Scored]:
        answers = self.held.reranker.score(requests)
        failed = any(answer.error for answer in answers)
        pairs = sum(len(request.documents) for request in requests)
        if not failed or pairs == 1 or self._remote:
            return answers
        # Each alone, so that only the guilty fail. Asking a service again may cost money.
        return [
            answer
            for request in requests
            for text in request.documents
            for answer in self.held.reranker.score(
                [replace(request, doc_ids=request.doc_ids[:1], documents=[text])]
            )
        ]

    def _look_at(self, whole: Scored) -> None:
        """Without the score of the pair itself there is nothing to go on with."""
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
    """The settings of a stored run as a reranker is created from them; there are no others."""
    return {
        name: value
        for name, value in settings.items()
        if isinstance(value, str | int | float | bool)
    }
