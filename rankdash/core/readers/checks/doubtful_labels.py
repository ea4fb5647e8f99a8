"""Labels that look wrong: candidates for a second look. No check changes a label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from rankdash.core.data.arrays import Coded, Flags, Floats, Integers, alike, owners, places_in
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.judgements import Judgements
from rankdash.core.data.overlap import places_of, pooled
from rankdash.core.data.ranking import Ranking, coded, text_array
from rankdash.core.metrics.judged import labelled_rows
from rankdash.core.readers.checks.shared_words import (
    FEWEST,
    LEVEL,
    SharedWords,
    Shift,
    likely_shift,
    shared_words,
)

Reason = Literal["twin_label", "twin_unlabelled", "ranked_low", "ranked_top", "few_words"]
REASONS: tuple[Reason, ...] = (
    "twin_label",
    "twin_unlabelled",
    "ranked_low",
    "ranked_top",
    "few_words",
)
# Levels of a check, the least strict first: a document is low below this share of a ranking, at the
# top until this rank, and shares few words above this chance.
_LOW = (0.5, 0.75, 0.9)
_TOP = (3, 1)
_CHANCES = (LEVEL, 0.2, 0.5)
# A level is used if it lists wrong labels at least this many times as often as labels on average.
# If a third of the labels is wrong, no check can reach more.
_LIFT = 3
# In a shorter list, the second half is close to the top.
_FEWEST_RANKED = 10
_WITNESSES = 2
_COLUMNS = (
    *("reason", "query_id", "doc_id", "label", "twin", "twin_label", "best_rank", "worst_rank"),
    *("grade", "words", "random_words", "chance"),
)
_LIMIT = 0.95


@dataclass(frozen=True)
class LabelCheck:
    """The counts of one check.

    checked: the number of labels that the check applies to, of `queries` queries; for "few_words"
        the number of queries, for twins the number of groups of equal texts.
    level: the strictness of the check; the first level at which it is not `weak`, or the strictest.
    of_wrong: the share of wrong labels that the check lists: of random documents of the rankings
        for "ranked_low", of relevant documents for "ranked_top", of labels of other queries for
        "few_words". None if unknown. Twins need no share: their texts are equal.
    """

    reason: Reason
    queries: int
    checked: int
    listed: int
    of_wrong: float | None = None
    level: float = 0.0

    @property
    def few(self) -> bool:
        """True if the data are too few to estimate shares."""
        return self.queries < FEWEST

    @property
    def weak(self) -> bool:
        """True if wrong labels are listed hardly more often than others. There are no candidates
        then."""
        if self.few or self.of_wrong is None:
            return False
        return self.listed * _LIFT > self.of_wrong * self.checked

    @property
    def of_correct(self) -> float:
        """The highest plausible share of correct labels that the check lists: the upper 95 % limit
        of Clopper and Pearson for the share of all labels, as if all of them were correct. Each
        query counts as one observation, because its labels may be alike."""
        from scipy.special import betaincinv

        if self.listed >= self.checked:
            return 1.0
        listed = self.listed * self.queries / self.checked
        return float(betaincinv(listed + 1, self.queries - listed, _LIMIT))

    def hits(self, share: float) -> float | None:
        """Return the share of candidates that are wrong if this share of labels is wrong; None if
        unknown."""
        if self.few or self.of_wrong is None or not self.listed:
            return None
        return min(share * self.of_wrong * self.checked / self.listed, 1.0)

    @property
    def wrong(self) -> float | None:
        """The highest plausible share of wrong labels of the kind of `of_wrong`; None if
        unknown."""
        return min(self.of_correct / self.of_wrong, 1.0) if self.of_wrong else None


@dataclass(frozen=True, eq=False)
class DoubtfulLabels:
    """The result of all checks of one data set.

    candidates: reason, query_id, doc_id, label (NaN without one), twin and twin_label (another
        document with the same text), best_rank and worst_rank (of the rankings that contain it),
        grade (mean of the judges), words, random_words and chance (as `SharedWords.table`).
    words: None if the texts do not allow the test.
    witnesses: the number of rankings and judges that the labels were compared with.
    """

    checks: tuple[LabelCheck, ...]
    candidates: pd.DataFrame
    words: SharedWords | None
    shift: Shift | None
    witnesses: int

    @property
    def like_others(self) -> bool:
        """True if most labels look like labels of other queries. Only twins are candidates then."""
        return self.words is not None and self.words.like_others


def doubtful_labels(
    dataset: Dataset, rankings: Mapping[str, Ranking], judges: Sequence[Judgements] = ()
) -> DoubtfulLabels:
    """Check the labels of a data set. rankings: its systems, without the first stage. A label above
    0 means relevant."""
    # The order of rows in a file contradicts no label, but its documents may have twins.
    in_file = dataset.first_stage == "rows"
    first = [] if in_file and rankings else [dataset.candidates]
    ranked = [each for each in (*first, *rankings.values()) if len(each)]
    documents = dataset.document_text()
    pool = _Pool(dataset, ranked, judges) if ranked else None
    twins, counts = _twins(dataset, documents, pool)
    checks = [
        LabelCheck(reason, *counts, int((twins["reason"] == reason).sum()))
        for reason in REASONS[:2]
    ]
    words, shift, contradicted = shared_words(dataset, documents), None, []
    witnesses = 0 if pool is None else pool.witnesses
    if pool is not None and witnesses >= _WITNESSES and (rankings or not in_file):
        contradicted = pool.contradicted()
        checks += [check for check, _ in contradicted]
    tables = [twins, *(table for _, table in contradicted)]
    if words is not None:
        check, rows = _strict_enough(
            [
                (_few_words(words, level), words.table["chance"].to_numpy() > level)
                for level in (_CHANCES[:1] if words.like_others else _CHANCES)
            ]
        )
        checks.append(check)
        if words.like_others:
            shift, tables = likely_shift(dataset, documents), [twins]
        else:
            found = words.table.iloc[rows].sort_values("chance", ascending=False, kind="stable")
            tables.append(found.drop(columns="documents").assign(reason="few_words"))
    candidates = pd.concat([each for each in tables if len(each)] or [twins], ignore_index=True)
    candidates = candidates.reindex(columns=list(_COLUMNS))
    candidates["twin"] = candidates["twin"].astype(object).fillna("")
    return DoubtfulLabels(tuple(checks), candidates, words, shift, witnesses)


def _few_words(words: SharedWords, level: float) -> LabelCheck:
    queries, listed = len(words.table), int((words.table["chance"] > level).sum())
    of_others = float((words.of_others > level).mean())
    return LabelCheck("few_words", queries, queries, listed, of_others, level)


def _strict_enough(levels: Sequence[tuple[LabelCheck, Flags]]) -> tuple[LabelCheck, Integers]:
    """Return the first check that is not weak, and its rows; if all are weak, the last and no
    rows. levels: check → flags of its rows, the least strict first."""
    for check, flags in levels:
        if not check.weak:
            return check, np.flatnonzero(flags)
    return levels[-1][0], np.zeros(0, dtype=np.int64)


class _Pool:
    """The P pairs of query and document in any of S rankings, with labels and J judges.

    query, doc: (P,) codes in `ranking`. label: (P,), NaN without one.
    rank: (P, S), 0 if not ranked. size: (P, S) the length of the query's list.
    grade: (P, J) from 0 to 1, NaN without one.
    """

    def __init__(
        self, dataset: Dataset, rankings: Sequence[Ranking], judges: Sequence[Judgements]
    ) -> None:
        self.ranking = pooled(rankings)
        self.query, self.doc = owners(self.ranking.offsets), self.ranking.docs
        shape = len(self.doc), len(rankings)
        self.rank, self.size = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int32)
        for at, each in enumerate(rankings):
            lists = places_in(text_array(each.query_ids), text_array(self.ranking.query_ids))
            docs = places_in(alike(each.documents), alike(self.ranking.documents))[self.doc]
            lists = lists[self.query]
            self.size[:, at] = np.where(lists >= 0, np.diff(each.offsets)[lists], 0)
            both = np.flatnonzero((lists >= 0) & (docs >= 0))
            rows, pairs = places_of(each, lists[both], docs[both])
            self.rank[both[pairs], at] = rows - each.offsets[lists[both[pairs]]] + 1
        # Rankings in the same order are one witness.
        unique = [
            at
            for at, ranks in enumerate(self.rank.T)
            if not any(np.array_equal(ranks, self.rank[:, before]) for before in range(at))
        ]
        self.rank, self.size = self.rank[:, unique], self.size[:, unique]
        labels = dataset.labels
        self.label = self._of_pairs(labels["query_id"], labels["doc_id"], labels["label"])
        self.grade = np.full((len(self.doc), len(judges)), np.nan)
        self.shown = self.grade.copy()
        for at, judge in enumerate(judges):
            graded, (low, high) = judge.graded, judge.scale
            ids = coded(graded["query_id"]), coded(graded["doc_id"])
            self.shown[:, at] = self._of_pairs(*ids, graded["label"].to_numpy(dtype=np.float64))
            self.grade[:, at] = (self.shown[:, at] - low) / (high - low)

    @property
    def witnesses(self) -> int:
        """The number of different rankings and of judges."""
        return self.rank.shape[1] + self.grade.shape[1]

    def _of_pairs(self, queries: Coded, documents: Coded, values: Floats) -> Floats:
        result = np.full(len(self.doc), np.nan)
        at, pairs = labelled_rows(self.ranking, queries, documents)
        result[at] = values[pairs]
        return result

    def contradicted(self) -> list[tuple[LabelCheck, pd.DataFrame]]:
        """Return the checks of relevant labels that all rankings and judges contradict, and of the
        other labels."""
        long = self.size >= _FEWEST_RANKED
        graded = np.isfinite(self.grade)
        ranked = self.rank > 0
        enough = (long.sum(axis=1) + graded.sum(axis=1)) >= _WITNESSES
        relevant, other = enough & (self.label > 0), enough & (self.label <= 0)
        # Random documents need the same judges.
        random = enough & (graded.any(axis=1) if graded.shape[1] else True)
        low = enough & (long & ranked).any(axis=1) & (~graded | (self.grade <= 0)).all(axis=1)
        top = enough & long.any(axis=1) & (~graded | (self.grade >= 0.5)).all(axis=1)
        return [
            self._check(
                "ranked_low",
                relevant,
                {
                    level: low & (~long | ~ranked | (self.rank > level * self.size)).all(axis=1)
                    for level in _LOW
                },
                random,
            ),
            self._check(
                "ranked_top",
                other,
                {
                    level: top & (~long | (ranked & (self.rank <= level))).all(axis=1)
                    for level in _TOP
                },
                relevant,
            ),
        ]

    def _check(
        self, reason: Reason, checked: Flags, levels: Mapping[float, Flags], wrong: Flags
    ) -> tuple[LabelCheck, pd.DataFrame]:
        """Return the check at the first level that is strict enough. checked, wrong: (P,) the
        labels that it applies to, and pairs like wrong labels. levels: level → listed pairs."""
        queries, count = len(np.unique(self.query[checked])), int(checked.sum())
        known = wrong.sum() >= FEWEST
        check, rows = _strict_enough(
            [
                (
                    LabelCheck(
                        reason,
                        queries,
                        count,
                        int((checked & flags).sum()),
                        float(flags[wrong].mean()) if known else None,
                        level,
                    ),
                    checked & flags,
                )
                for level, flags in levels.items()
            ]
        )
        table = self.table(reason, rows)
        first = ["best_rank", "worst_rank"] if reason == "ranked_low" else ["worst_rank"]
        return check, table.sort_values(first, ascending=reason == "ranked_top", kind="stable")

    def table(self, reason: Reason, rows: Integers) -> pd.DataFrame:
        """Return the pairs in some rows as candidates."""
        rank = self.rank[rows].astype(np.float64)
        rank[rank == 0] = np.nan
        grades = self.shown[rows]
        known = np.isfinite(grades).sum(axis=1)
        return pd.DataFrame(
            {
                "reason": reason,
                "query_id": self.ranking.query_ids[self.query[rows]],
                "doc_id": self.ranking.doc_ids[self.doc[rows]],
                "label": self.label[rows],
                "best_rank": np.fmin.reduce(rank, axis=1),
                "worst_rank": np.fmax.reduce(rank, axis=1),
                "grade": np.where(known, np.nansum(grades, axis=1) / np.maximum(known, 1), np.nan),
            }
        )


def _twins(
    dataset: Dataset, documents: pd.Series[str], pool: _Pool | None
) -> tuple[pd.DataFrame, tuple[int, int]]:
    """Return documents with a lower label than another one with the same text, and ranked ones
    without a label that have the text of a relevant one. Also return the number of queries with a
    labelled document that has a twin, and of groups of equal texts, counted per query."""
    # The last one, at -1, is for documents of a run that the data set lacks.
    labels, group = dataset.labels, np.append(_equal_texts(documents), -1)
    known = text_array(documents.index.to_numpy(dtype=object))
    place = places_in(known, labels["doc_id"].texts)
    rows = np.flatnonzero(group[place[labels["doc_id"].codes]] >= 0)
    groups = int(group.max(initial=-1)) + 1
    if not len(rows):
        return pd.DataFrame({"reason": [], "query_id": [], "doc_id": [], "label": []}), (0, 0)
    query, doc = labels["query_id"].codes[rows], labels["doc_id"].codes[rows]
    values = labels["label"][rows]
    key = query.astype(np.int64) * groups + group[place[doc]]
    # The highest label of each group first.
    order = np.lexsort((-values, key))
    keys, first = np.unique(key[order], return_index=True)
    best = order[first]
    highest = best[np.searchsorted(keys, key)]
    lower = np.flatnonzero(values < values[highest])
    ids = labels["query_id"].names, labels["doc_id"].names
    tables = [
        pd.DataFrame(
            {
                "reason": "twin_label",
                "query_id": ids[0][query[lower]],
                "doc_id": ids[1][doc[lower]],
                "label": values[lower],
                "twin": ids[1][doc[highest[lower]]],
                "twin_label": values[highest[lower]],
            }
        )
    ]
    if pool is not None:
        own = places_in(labels["query_id"].texts, text_array(pool.ranking.query_ids))[pool.query]
        of_doc = group[places_in(known, alike(pool.ranking.documents))]
        candidate = np.flatnonzero(np.isnan(pool.label) & (own >= 0) & (of_doc[pool.doc] >= 0))
        wanted = own[candidate] * groups + of_doc[pool.doc[candidate]]
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        found = (keys[at] == wanted) & (values[best[at]] > 0)
        twin = best[at[found]]
        tables.append(
            pool.table("twin_unlabelled", candidate[found]).assign(
                twin=ids[1][doc[twin]], twin_label=values[twin]
            )
        )
    return pd.concat(tables, ignore_index=True), (len(np.unique(query)), len(keys))


def _equal_texts(documents: pd.Series[str]) -> Integers:
    """Return the (D,) number of the group of documents with the same text, apart from case and
    white space; -1 without another one."""

    texts = [" ".join(text.casefold().split()) for text in documents]
    hashes = np.array([hash(text) for text in texts], dtype=np.int64)
    _, place, often = np.unique(hashes, return_inverse=True, return_counts=True)
    several = [at for at in np.flatnonzero(often[place] > 1).tolist() if texts[at]]
    # Different texts may have the same hash.
    codes, _ = pd.factorize(pd.Series([texts[at] for at in several], dtype=object))
    alone = np.bincount(codes, minlength=1)[codes] < 2
    group = np.full(len(documents), -1)
    group[np.array(several, dtype=np.int64)[~alone]] = codes[~alone]
    return group
