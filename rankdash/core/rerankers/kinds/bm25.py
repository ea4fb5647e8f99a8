"""BM25: lexical matching with statistics from the whole corpus.

Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009); the variants
are those compared by Kamphuis et al., "Which BM25 Do You Mean?" (2020), computed by bm25s.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from rankdash.core.base.errors import ScoringError, UnavailableError
from rankdash.core.base.rules import SettingSpec, parse_settings
from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers.base import Capabilities, Corpus, Request, RerankerKind, Scored, Scores


class Index:
    """BM25 statistics over texts; `settings` are complete settings of the kind "bm25"."""

    def __init__(self, texts: Sequence[str], settings: Mapping[str, Any]) -> None:
        self._texts = texts
        self._tokenize = Tokenizer(settings["language"])
        words = self._tokenize(texts)
        self._mean_length = float(np.mean([len(each) for each in words])) if words else 0.0
        self._bm25 = _build_index(words, settings) if any(words) else None

    def scores(self, query: str) -> Scores:
        """Return the score of every text, float64; all zero if the query shares no word with any
        text."""
        words = self._tokenize([query])[0]
        if self._bm25 is None or not words:
            return np.zeros(len(self._texts))
        scores: Scores = self._bm25.get_scores(words).astype(np.float64)
        return scores

    def text(self, place: int) -> str:
        """Return the indexed text at position `place`, counted from 0."""
        return self._texts[place]

    def scores_of(self, query: str, texts: Sequence[str]) -> Scores:
        """Return scores, float64, of texts that are not indexed, with the statistics of the indexed
        ones. A word that no indexed text contains adds nothing."""
        words = self._tokenize([query])[0]
        if self._bm25 is None:
            return np.zeros(len(texts))
        return _weighed(
            self._bm25, words, self._tokenize(texts), len(self._texts), self._mean_length
        )


def _build_index(words: list[list[str]], settings: Mapping[str, Any]) -> Any:
    try:
        import bm25s
    except ImportError as error:
        raise _missing("bm25s") from error
    # bm25s sets its own logger to DEBUG when imported.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    bm25 = bm25s.BM25(k1=settings["k1"], b=settings["b"], method=settings["method"])
    bm25.index(words, show_progress=False)
    return bm25


def _weighed(
    bm25: Any, query: list[str], texts: list[list[str]], size: int, mean_length: float
) -> Scores:
    """Compute scores as bm25s does, which supports indexed texts only; a test compares the two."""
    from bm25s import scoring

    rarity = scoring._select_idf_scorer(bm25.method)
    frequency = scoring._select_tfc_scorer(bm25.method)
    settings = {"l_avg": mean_length, "k1": bm25.k1, "b": bm25.b, "delta": bm25.delta}
    scores = np.zeros(len(texts))
    for word, repeats in Counter(query).items():
        code = bm25.vocab_dict.get(word)
        if code is None:
            continue
        column = bm25.scores["indptr"]
        weight = rarity(int(column[code + 1] - column[code]), N=size)
        counts = np.array([text.count(word) for text in texts], dtype=np.float64)
        lengths = np.array([len(text) for text in texts], dtype=np.float64)
        scores += repeats * weight * frequency(tf_array=counts, l_d=lengths, **settings)
    return scores


class Bm25:
    """BM25 scorer of candidates; term statistics come from the corpus passed to `prepare`."""

    name = "bm25"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self._index: Index | None = None
        self._places: dict[str, int] = {}

    def prepare(self, corpus: Corpus) -> None:
        """Index the corpus. Raises UnavailableError if a package is missing."""
        self._places = {doc: place for place, doc in enumerate(corpus.doc_ids)}
        self._index = Index(corpus.texts, self.settings)

    def fingerprint(self) -> str:
        """Return "": a score depends on the statistics of the data set, and computing it is as fast
        as reading a cache."""
        return ""

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """Return BM25 scores; a query with a document outside the corpus fails.

        A document with a text that differs from the corpus is scored by its own text, with the
        statistics of the corpus.
        """
        if self._index is None:
            raise ScoringError("BM25 has no statistics yet: call prepare() first.")
        return [self._score(self._index, request) for request in requests]

    def _score(self, index: Index, request: Request) -> Scored:
        unknown = [doc for doc in request.doc_ids if doc not in self._places]
        if unknown:
            error = ScoringError("Document {doc!r} is not in the corpus.", doc=unknown[0])
            return Scored.failed(len(request.doc_ids), str(error))
        places = [self._places[doc] for doc in request.doc_ids]
        changed = [
            number
            for number, (place, text) in enumerate(zip(places, request.documents, strict=True))
            if text != index.text(place)
        ]
        scores = index.scores(request.query)[np.array(places, dtype=np.int64)]
        if changed:
            scores[changed] = index.scores_of(
                request.query, [request.documents[number] for number in changed]
            )
        return Scored(scores)


def order_candidates(
    queries: pd.Series[str], documents: pd.Series[str], candidates: pd.DataFrame
) -> Ranking:
    """Order each query's candidates by BM25, for data without a first-stage order.

    queries, documents: id → text; statistics come from all documents. A candidate or query without
        text scores 0.
    candidates: query_id, doc_id. Equal scores are in the order of the rows.
    """
    index = Index([str(text) for text in documents], DEFAULTS)
    scores = np.zeros(len(candidates))
    for query, rows in candidates.groupby("query_id", sort=False).indices.items():
        of_query = index.scores(str(queries.get(str(query), "")))
        places = documents.index.get_indexer(pd.Index(candidates["doc_id"].iloc[rows]))
        scores[rows] = np.where(places >= 0, of_query[places], 0.0)
    return Ranking.from_columns(candidates["query_id"], candidates["doc_id"], scores)


KIND = RerankerKind(
    name=Bm25.name,
    title="BM25",
    meaning="Matches the words that query and document share; rare words weigh more. The lexical "
    "baseline; needs no model. English is stemmed, Chinese is segmented into words.",
    settings=(
        SettingSpec(
            "k1",
            1.5,
            "k1",
            "Weight of repeated words: larger values reward repeats more; 0 ignores repeats.",
            within=(0, 10),
        ),
        SettingSpec(
            "b",
            0.75,
            "b",
            "Length normalisation: the penalty for long documents; 0 disables it.",
            within=(0, 1),
        ),
        SettingSpec(
            "method",
            "lucene",
            "Variant",
            "The BM25 formula; Elasticsearch and OpenSearch use lucene.",
            choices=("lucene", "robertson", "atire", "bm25l", "bm25+"),
        ),
        SettingSpec(
            "language",
            "auto",
            "Language",
            "auto: English words are stemmed and Chinese is segmented into words, by script; en "
            "or zh: only that language; none: neither, for other languages.",
            choices=("auto", "en", "zh", "none"),
        ),
    ),
    capabilities=Capabilities(),
    build=Bm25,
)

DEFAULTS = parse_settings(KIND.settings, {})
"""Default settings."""


# Words for lexical matching, from text that may mix English and Chinese.

Language = Literal["auto", "en", "zh", "none"]

# Scripts without spaces between words: Han (with extensions), Hiragana and Katakana.
_UNSPACED = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_UNSPACED += "\U00020000-\U0003fffd"
_UNSPACED_RUN = re.compile(f"([{_UNSPACED}]+)")
_WORD = re.compile(r"\w+")


class Tokenizer:
    """Splitter of texts into lower-case words, by script within each text.

    Space-separated words are stemmed as English ("auto", "en") or used unchanged ("zh", "none"). A
    run of Chinese characters yields its single characters and, for "auto" and "zh", the words that
    jieba-rs returns in search mode: long ones and those within them. With the characters, a short
    query still matches if query and document are segmented differently.
    """

    def __init__(self, language: Language = "auto") -> None:
        self._stem = _stemmer() if language in ("auto", "en") else list
        self._segments = language in ("auto", "zh")

    def __call__(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the words of each text, in order, repeats included."""
        return [self._words(text) for text in texts]

    def _words(self, text: str) -> list[str]:
        runs = _UNSPACED_RUN.split(unicodedata.normalize("NFKC", text).lower())
        words: list[str] = []
        for position, run in enumerate(runs):
            # split() with a group alternates: text between runs, run, text between runs, …
            if position % 2 == 0:
                words.extend(self._stem(_WORD.findall(run)))
            else:
                words.extend(run)
                if self._segments:
                    words.extend(word for word in _segmented(run) if len(word) > 1)
        return words


def _stemmer() -> Callable[[list[str]], list[str]]:
    try:
        import Stemmer
    except ImportError as error:
        raise _missing("PyStemmer") from error
    stem: Callable[[list[str]], list[str]] = Stemmer.Stemmer("english").stemWords
    return stem


def _segmented(text: str) -> list[str]:
    """Return the words of a Chinese text; the first call loads the dictionary (about 0.2 s)."""
    try:
        import rjieba
    except ImportError as error:
        raise _missing("rjieba") from error
    return rjieba.cut_for_search(text)


def _missing(package: str) -> UnavailableError:
    return UnavailableError(
        "The package {package} is not installed.",
        remedy="Install it: pip install {package}",
        package=package,
    )
