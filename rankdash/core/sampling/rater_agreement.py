"""How far raters agree: a judge with people, overall and by group, and which way it errs; and kappa
of any two raters.

Agreement describes a judge; it is no licence. A judge with a high kappa that errs in favour of one
system turns a verdict around: see `bias_corrected.py` for what people's labels make of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
from scipy import special

from rankdash.core.base.rules import FEWEST_QUERIES
from rankdash.core.data.arrays import Floats, Integers
from rankdash.core.data.dataset import Judgements
from rankdash.core.sampling.label_plan import LabelPool

_PAIR = ["query_id", "doc_id"]
FAVOUR_LEVEL = 0.95
"""The level of the intervals of agreement and bias."""
LABEL, GRADE = "label", "grade"
"""Groups by what people said, and by what the judge said."""

FEWEST_PAIRS = 10
"""Of fewer pairs there is no kappa and no interval; nor an interval of fewer than `FEWEST_QUERIES`
queries, over which it is."""

# So many labels use the highest grade of their scale.
_MANY_LABELS = 100
_ROUNDING = 1e-9

_COLUMNS = (
    *("by", "group", "queries", "pairs", "agree", "people_relevant", "judge_relevant"),
    *("over", "under", "difference", "difference_low", "difference_high"),
    *("kappa", "kappa_low", "kappa_high", "quadratic", "quadratic_low", "quadratic_high"),
)


@dataclass(frozen=True, eq=False)
class JudgeAgreement:
    """A judge beside people, on the pairs that both graded.

    pairs: query_id, doc_id, label (people's) and grade (the judge's). without_grade: labelled pairs
    that the judge has no grade for. threshold, cut: the lowest label and the lowest grade that are
    relevant. highest, top: of the labels and of the judge's scale. binary: whether these two
    differ, so that labels and grades are compared as relevant (1) or not (0).
    """

    judge: str
    pairs: pd.DataFrame
    without_grade: int
    threshold: float
    cut: float
    highest: float
    top: float
    binary: bool

    @property
    def copied(self) -> bool:
        """Whether the grades are people's labels on every pair, as in a copy of them, and these are
        many enough to tell."""
        return len(self.pairs) >= FEWEST_PAIRS and bool(
            (self.pairs[LABEL] == self.pairs[GRADE]).all()
        )

    @cached_property
    def unweighted(self) -> Kappa:
        """Its table is the confusion matrix: people in rows, the judge in columns. NaN of fewer
        than `FEWEST_PAIRS` pairs, as all kappas here."""
        return _kappa(*self._compared, self._queries)

    @cached_property
    def quadratic(self) -> Kappa:
        return _kappa(*self._compared, self._queries, "quadratic")

    @cached_property
    def relevant(self) -> Kappa:
        """Relevant or not, at the threshold."""
        return _kappa(*self._binary, self._queries)

    @cached_property
    def overall(self) -> pd.Series:
        """All pairs as one row of `by_group`."""
        return pd.Series(self._row("", "", np.arange(len(self.pairs))))

    def by_group(self, groups: Mapping[str, pd.Series] | None = None) -> pd.DataFrame:
        """One row for each group: of people's labels, of the judge's grades, and of others.

        groups: name → group of each query (index query id) or of each pair (index query and
        document id); pairs without one are in none.

        Columns: by, group; queries, pairs; agree: the share with the same grade; people_relevant
        and judge_relevant: the shares at or above the threshold; over, under: the shares that the
        judge grades higher, or lower, than people; difference: the judge's grade less people's, the
        mean; kappa, quadratic, which groups by label or grade have none of. Each of the last three
        with its 95 % interval over queries; NaN where there is none: see `FEWEST_PAIRS`.
        """
        label, grade = self._compared
        named = [(LABEL, pd.Series(label)), (GRADE, pd.Series(grade))]
        named += [(name, self._aligned(values)) for name, values in (groups or {}).items()]
        rows = [
            self._row(name, group, np.asarray(places))
            for name, values in named
            for group, places in values.groupby(values, sort=True).indices.items()
        ]
        return pd.DataFrame(rows, columns=list(_COLUMNS))

    def favours(self, lifted: pd.Series, challenger: str, baseline: str) -> Favour:
        """How much higher, against people, the judge grades what the challenger ranks higher than
        what the baseline does. lifted: of `lifted_by`."""
        label, grade = self._compared
        owner = self._aligned(lifted)
        up, down = ((owner == name).to_numpy() for name in (challenger, baseline))
        if not (up.any() and down.any()) or up.sum() + down.sum() < FEWEST_PAIRS:
            return Favour(challenger, float("nan"), float("nan"), float("nan"))
        error = grade - label
        difference = float(error[up].mean() - error[down].mean())
        # A mean over all pairs whose values add up to the difference of the two means.
        share = np.where(up, 1 / up.mean(), 0.0) - np.where(down, 1 / down.mean(), 0.0)
        centred = error - np.where(up, error[up].mean(), error[down].mean())
        reach = _reach(share * centred, self._queries)
        return Favour(challenger, difference, difference - reach, difference + reach)

    @cached_property
    def disagreements(self) -> pd.DataFrame:
        """query_id, doc_id, label, grade and difference (the judge's less people's) of the pairs
        that differ, the furthest apart first."""
        label, grade = self._compared
        pairs = self.pairs.assign(difference=grade - label)
        pairs = pairs[pairs["difference"] != 0]
        order = np.argsort(-pairs["difference"].abs().to_numpy(), kind="stable")
        return pairs.iloc[order].reset_index(drop=True)

    @cached_property
    def _queries(self) -> Integers:
        return pd.factorize(self.pairs["query_id"])[0]

    @cached_property
    def _binary(self) -> tuple[Floats, Floats]:
        label, grade = (
            (self.pairs[side].to_numpy() >= lowest).astype(np.float64)
            for side, lowest in ((LABEL, self.threshold), (GRADE, self.cut))
        )
        return label, grade

    @cached_property
    def _compared(self) -> tuple[Floats, Floats]:
        if self.binary:
            return self._binary
        return self.pairs[LABEL].to_numpy(), self.pairs[GRADE].to_numpy()

    def _aligned(self, values: pd.Series) -> pd.Series:
        of_pairs = isinstance(values.index, pd.MultiIndex)
        index = pd.MultiIndex.from_frame(self.pairs[_PAIR]) if of_pairs else self.pairs["query_id"]
        return values.reindex(index).reset_index(drop=True)

    def _row(self, by: str, group: object, places: Integers) -> dict[str, object]:
        label, grade = (side[places] for side in self._compared)
        relevant = [side[places].mean() if len(places) else np.nan for side in self._binary]
        queries = self._queries[places]
        error = grade - label
        row: dict[str, object] = {
            "by": by,
            "group": group,
            "queries": len(np.unique(queries)),
            "pairs": len(places),
            "people_relevant": relevant[0],
            "judge_relevant": relevant[1],
        }
        for name, value in {
            "agree": error == 0,
            "over": error > 0,
            "under": error < 0,
            "difference": error,
        }.items():
            row[name] = float(value.mean()) if len(places) else np.nan
        reach = _reach(error, queries)
        row["difference_low"] = float(row["difference"]) - reach  # type: ignore[arg-type]
        row["difference_high"] = float(row["difference"]) + reach  # type: ignore[arg-type]
        if by not in (LABEL, GRADE):
            for name, kappa in {
                "kappa": _kappa(label, grade, queries),
                "quadratic": _kappa(label, grade, queries, "quadratic"),
            }.items():
                row |= {name: kappa.kappa, f"{name}_low": kappa.low, f"{name}_high": kappa.high}
        return row


def _kappa(
    label: Floats, grade: Floats, queries: Integers, weighting: Weighting = "unweighted"
) -> Kappa:
    kappa, nan = cohen_kappa(label, grade, weighting, clusters=queries), float("nan")
    if not _enough(queries):
        kappa = replace(kappa, low=nan, high=nan)
    return kappa if len(label) >= FEWEST_PAIRS else replace(kappa, kappa=nan)


def _reach(values: Floats, queries: Integers) -> float:
    """Half the interval of their mean; NaN where there is none."""
    return clustered_reach(values, queries, FAVOUR_LEVEL) if _enough(queries) else float("nan")


def _enough(queries: Integers) -> bool:
    """Whether pairs of these queries have an interval."""
    return len(queries) >= FEWEST_PAIRS and len(np.unique(queries)) >= FEWEST_QUERIES


@dataclass(frozen=True)
class Favour:
    """How much higher a judge grades, against people, what a challenger ranks higher than what the
    baseline does, in grades, with its 95 % interval over queries; NaN where there is none, and of
    fewer than `FEWEST_PAIRS` pairs."""

    challenger: str
    difference: float
    low: float
    high: float

    @property
    def proven(self) -> bool:
        """Whether the judge errs in favour of one of the two."""
        return self.low > 0 or self.high < 0


def agreement(
    judgements: Judgements,
    labels: pd.DataFrame,
    *,
    threshold: float,
) -> JudgeAgreement:
    """Compare a judge with human labels: query_id, doc_id and label, one row a pair.

    If the highest label is not the judge's highest grade, the scales differ, and the two are
    compared as relevant or not (`_grade_cut`). Fewer than `_MANY_LABELS` labels below the judge's
    highest grade may be on its scale, unless all are 0 and 1.
    """
    # Any number of labels may have been given: the ones in question are those of the judge's pairs.
    judged = judgements.table[[*_PAIR, "grade"]]
    both = labels[[*_PAIR, "label"]].astype({"label": np.float64}).merge(judged, on=_PAIR)
    graded = both.dropna().reset_index(drop=True)
    values = np.unique(labels["label"].to_numpy(dtype=np.float64))
    top = judgements.scale[1]
    shorter = len(labels) >= _MANY_LABELS or set(values) <= {0.0, 1.0}
    highest = float(values[-1]) if len(values) else float("nan")
    binary = bool(len(graded)) and (highest > top or (highest < top and shorter))
    return JudgeAgreement(
        judge=judgements.name,
        pairs=graded,
        without_grade=len(labels) - len(graded),
        threshold=threshold,
        cut=_grade_cut(judgements, values, threshold, highest) if binary else threshold,
        highest=highest,
        top=top,
        binary=binary,
    )


def _grade_cut(judgements: Judgements, values: Floats, threshold: float, highest: float) -> float:
    """Return the lowest grade that counts as relevant on the judge's own scale.

    On the scale of the labels, the border is halfway between the threshold and the next lower
    label; the judge's border is at the same share of its scale. values: the labels, ascending.
    """
    low, top = judgements.scale
    start = min(0.0, float(values[0]))
    end = max(highest, threshold, start + 1)
    below = max([start, *(float(each) for each in values if each < threshold)])
    border = low + ((below + threshold) / 2 - start) / (end - start) * (top - low)
    grades = judgements.graded["label"].to_numpy()
    return math.ceil(border - _ROUNDING) if (grades == np.floor(grades)).all() else border


def lifted_by(pool: LabelPool, challenger: str, baseline: str) -> pd.Series:
    """Which of two systems ranks each pair of the pool higher, by name; missing where both rank it
    the same. Index: query and document id."""
    before, after = (pool.ranks[pool.systems.index(name)] for name in (baseline, challenger))
    owner = np.full(len(pool), None, dtype=object)
    owner[after < before], owner[after > before] = challenger, baseline
    return pd.Series(owner, index=pool.index)


@dataclass(frozen=True)
class Repeats:
    """How far a judge agrees with itself: repeats of the same judge over the pairs that all of them
    graded. same: the share of pairs with one grade only; kappa: the mean over pairs of repeats,
    unweighted; NaN where there is none, and of fewer than `FEWEST_PAIRS` pairs."""

    repeats: int
    pairs: int
    same: float
    kappa: float


def repeated(repeats: Sequence[Judgements]) -> Repeats:
    """The agreement of a judge's repeats, at least two."""
    table = pd.concat([each.graded.set_index(_PAIR)["label"] for each in repeats], axis=1).dropna()
    grades = table.to_numpy(dtype=np.float64)
    if not len(grades):
        return Repeats(len(repeats), 0, float("nan"), float("nan"))
    kappas = [
        cohen_kappa(grades[:, one], grades[:, other]).kappa
        for one in range(len(repeats))
        for other in range(one)
    ]
    known = [kappa for kappa in kappas if not np.isnan(kappa) and len(grades) >= FEWEST_PAIRS]
    return Repeats(
        repeats=len(repeats),
        pairs=len(grades),
        same=float((grades == grades[:, :1]).all(axis=1).mean()),
        kappa=float(np.mean(known)) if known else float("nan"),
    )


# Judges that judge themselves: a judge that is a compared system, or shares a maker with one.
#
# Such a judge tends to like what its own kind ranks high. Makers are known by the names of their
# models, which is a guess: a model of another name, or one that was trained on a maker's output, is
# not seen.

_FAMILIES: Mapping[str, str] = {
    "AI21": "ai21|jamba",
    "Alibaba": "alibaba|dashscope|gte|qwen|qwq|tongyi",
    "Allen AI": "allenai|olmo|tulu",
    "Amazon": "amazon|nova|titan",
    "Anthropic": "anthropic|claude",
    "BAAI": "baai|bge",
    "Baichuan": "baichuan",
    "Baidu": "baidu|ernie",
    "ByteDance": "bytedance|doubao|seed-oss",
    "Cohere": "aya|cohere|command-[ar]|rerank-(?:english|multilingual|v[0-9])",
    "Contextual AI": "contextual|ctxl",
    "DeepSeek": "deepseek",
    "Google": "gecko|gemini|gemma|google|palm|semantic-ranker",
    "IBM": "granite|ibm|watsonx",
    "InternLM": "internlm",
    "Jina AI": "jina|jinaai",
    "LG": "exaone",
    "Meta": "llama|meta|meta-llama",
    "Microsoft": "e5|microsoft|phi",
    "MiniMax": "abab|minimax",
    "Mistral AI": "codestral|magistral|ministral|mistral|mistralai|mixtral|pixtral",
    "Mixedbread": "mixedbread|mxbai",
    "Moonshot AI": "kimi|moonshot|moonshotai",
    "NetEase": "bce|netease-youdao",
    "NVIDIA": "nemotron|nv-embed|nv-rerank|nvidia",
    "OpenAI": "chatgpt|gpt|o1|o3|o4|openai|text-embedding-(?:3|ada)",
    "OpenBMB": "minicpm|openbmb",
    "Snowflake": "arctic|snowflake",
    "Tencent": "hunyuan|tencent",
    "Upstage": "solar|upstage",
    "Voyage AI": "voyage|voyageai",
    "xAI": "grok|xai",
    "Zhipu AI": "chatglm|glm|thudm|zai-org|zhipu|zhipuai",
    "01.AI": "01-ai|yi",
}
"""Maker → how the names of its models begin, or those of a part of them."""

_PATTERNS = {
    maker: re.compile(rf"(?<![a-z0-9])(?:{names})(?![a-z])") for maker, names in _FAMILIES.items()
}


@dataclass(frozen=True)
class Circularity:
    """A system that the judge is (`same`), or whose maker it shares; maker is "" where unknown."""

    system: str
    same: bool
    maker: str


def circular(judge: str, systems: Mapping[str, Sequence[str]]) -> list[Circularity]:
    """Which systems the judge cannot be trusted with.

    judge: its model, such as "gpt-4o-mini". systems: name of each → what it is made of: its models
    and names.
    """
    model, makers = _model(judge), makers_of(judge)
    circularities = []
    for system, texts in systems.items():
        shared = [maker for maker in makers if any(maker in makers_of(text) for text in texts)]
        same = bool(model) and any(_model(text) == model for text in texts)
        if same or shared:
            circularities.append(Circularity(system, same, shared[0] if shared else ""))
    return circularities


def makers_of(model: str) -> tuple[str, ...]:
    """Who made a model, as far as its name tells: none, one, or several where one was made from
    another's, such as a "DeepSeek-R1-Distill-Llama-8B"."""
    text = model.lower()
    return tuple(maker for maker, pattern in _PATTERNS.items() if pattern.search(text))


def _model(text: str) -> str:
    """The name without its owner: "openai/gpt-4o" and "gpt-4o" are one."""
    return text.lower().strip().rsplit("/", 1)[-1]


# Cohen's kappa: how far two raters agree beyond chance, with an interval.

_LEVEL = 0.95
Weighting = Literal["unweighted", "quadratic"]


@dataclass(frozen=True, eq=False)
class Kappa:
    """Agreement of two raters on n pairs.

    kappa: 1 for full agreement, 0 for what chance gives; NaN where both gave one and the same
        label only, or there is no pair. low, high: its 95 % interval, NaN where there is none.
    agree: the share of pairs with the same label. grades: (G,) the labels in use, ascending.
    table: (G, G) how often the first rater (rows) gave each, and the second (columns).
    """

    kappa: float
    low: float
    high: float
    agree: float
    pairs: int
    grades: Floats
    table: Integers


def cohen_kappa(
    first: Floats,
    second: Floats,
    weighting: Weighting = "unweighted",
    *,
    clusters: Integers | None = None,
) -> Kappa:
    """Kappa of (n,) labels of two raters for the same pairs.

    weighting: "quadratic" counts a disagreement by its squared distance in grades in use.
    clusters: (n,) the query of each pair, where whole queries were sampled: pairs of one query are
    alike, so that the interval is wider. None where pairs were sampled.

    Sources: Cohen 1960 and 1968; the standard error is that of Fleiss, Cohen and Everitt 1969, over
    queries that of the same first-order terms summed by query.
    """
    grades, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    size, n = len(grades), len(first)
    table = np.bincount(codes[:n] * size + codes[n:], minlength=size * size).reshape(size, size)
    nan = float("nan")
    if not n:
        return Kappa(nan, nan, nan, nan, 0, grades, table)
    place = np.arange(size)
    distance = np.abs(place[:, None] - place)
    apart = (distance**2 if weighting == "quadratic" else distance > 0).astype(np.float64)
    share = table / n
    rows, columns = share.sum(axis=1), share.sum(axis=0)
    seen, chance = (apart * share).sum(), (apart * np.outer(rows, columns)).sum()
    agree = float(np.trace(share))
    if chance == 0:
        return Kappa(nan, nan, nan, agree, n, grades, table)
    kappa = float(1 - seen / chance)
    # Fleiss et al. in terms of disagreement: 1 - weight of agreement.
    margin = (apart @ columns)[:, None] + rows @ apart
    term = apart - (1 - kappa) * margin
    if clusters is not None:
        reach = clustered_reach(term[codes[:n], codes[n:]], clusters, _LEVEL) / chance
    else:
        variance = (share * term**2).sum() - ((1 - kappa) * chance) ** 2
        normal = special.ndtri((1 + _LEVEL) / 2)
        reach = float(normal * np.sqrt(max(float(variance), 0.0) / n) / chance)
    # Of few pairs the interval would reach beyond what a kappa can be.
    low, high = float(np.maximum(kappa - reach, -1.0)), float(np.minimum(kappa + reach, 1.0))
    return Kappa(kappa, low, high, agree, n, grades, table)


# The spread of a mean whose values come in clusters, such as pairs of the same query: those of one
# cluster are alike, so that they say less than as many that were sampled one by one.


def clustered_reach(values: Floats, clusters: Integers, level: float) -> float:
    """Half the width of the t interval of the mean of (n,) values, for (n,) numbers of clusters;
    NaN for fewer than two of them.

    Source: Liang and Zeger 1986, the variance that is robust to clusters, G / (G - 1) included.
    """
    owners = np.unique(clusters, return_inverse=True)[1]
    count = int(owners.max(initial=-1)) + 1
    if count < 2:
        return float("nan")
    sums = np.bincount(owners, values - values.mean(), count)
    variance = float((sums**2).sum()) * count / (count - 1) / len(values) ** 2
    return float(special.stdtrit(count - 1, (1 + level) / 2) * np.sqrt(variance))
