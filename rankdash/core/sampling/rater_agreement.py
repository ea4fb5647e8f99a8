"""The agreement of raters: of a judge with human labels, overall and by group, with the direction
of its errors; and kappa of any two raters.

High agreement does not make a judge trustworthy. A judge with a high kappa that favours one system
can reverse a verdict: see `bias_corrected.py` for the correction with human labels.
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
from rankdash.core.data.judgements import Judgements
from rankdash.core.sampling.label_plan import LabelPool

_PAIR = ["query_id", "doc_id"]
FAVOUR_LEVEL = 0.95
"""The level of the intervals of agreement and bias."""
LABEL, GRADE = "label", "grade"
"""Groups by human label, and by the judge's grade."""

FEWEST_PAIRS = 10
"""The minimum number of pairs for a kappa and for an interval; an interval also needs
`FEWEST_QUERIES` queries, over which it is computed."""

# This many labels are assumed to include the highest grade of their scale.
_MANY_LABELS = 100
_ROUNDING = 1e-9

_COLUMNS = (
    *("by", "group", "queries", "pairs", "agree", "people_relevant", "judge_relevant"),
    *("over", "under", "difference", "difference_low", "difference_high"),
    *("kappa", "kappa_low", "kappa_high", "quadratic", "quadratic_low", "quadratic_high"),
)


@dataclass(frozen=True, eq=False)
class JudgeAgreement:
    """A judge compared with human labels, on the pairs that have both.

    pairs: query_id, doc_id, label (human) and grade (the judge's). without_grade: labelled pairs
        without a grade.
    threshold, cut: the lowest relevant label and the lowest relevant grade. highest, top: of the
        labels and of the judge's scale.
    binary: whether these two differ, so that labels and grades are compared as relevant (1) or not
        (0).
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
        """True if the grades equal the human labels on every pair, and there are enough pairs to
        suspect a copy."""
        return len(self.pairs) >= FEWEST_PAIRS and bool(
            (self.pairs[LABEL] == self.pairs[GRADE]).all()
        )

    @cached_property
    def unweighted(self) -> Kappa:
        """The kappa whose table is the confusion matrix: human labels in rows, grades in columns.
        All kappas here are NaN for fewer than `FEWEST_PAIRS` pairs."""
        return _kappa(*self._compared, self._queries)

    @cached_property
    def quadratic(self) -> Kappa:
        return _kappa(*self._compared, self._queries, "quadratic")

    @cached_property
    def relevant(self) -> Kappa:
        """The kappa of binary relevance: label >= `threshold`, grade >= `cut`."""
        return _kappa(*self._binary, self._queries)

    @cached_property
    def overall(self) -> pd.Series:
        """All pairs as one row of `by_group`."""
        return pd.Series(self._row("", "", np.arange(len(self.pairs))))

    def by_group(self, groups: Mapping[str, pd.Series] | None = None) -> pd.DataFrame:
        """Return one row for each group: by human label, by the judge's grade, and by `groups`.

        groups: name → group of each query (index query id) or of each pair (index query and
            document id); pairs without a group are omitted.

        Columns: by, group; queries, pairs; agree: the share with the same grade; people_relevant
            and judge_relevant: the shares at or above the threshold; over, under: the shares that
            the judge grades higher, or lower, than the human label; difference: the mean of the
            judge's grade minus the human label; kappa, quadratic, NaN for groups by label or grade.
            Each of the last three with its 95 % interval over queries; NaN if undefined: see
            `FEWEST_PAIRS`.
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
        """Return how much more the judge over-grades documents that the challenger ranks higher
        than documents that the baseline ranks higher, compared with human labels. lifted: from
        `lifted_by`."""
        label, grade = self._compared
        owner = self._aligned(lifted)
        up, down = ((owner == name).to_numpy() for name in (challenger, baseline))
        if not (up.any() and down.any()) or up.sum() + down.sum() < FEWEST_PAIRS:
            return Favour(challenger, float("nan"), float("nan"), float("nan"))
        error = grade - label
        difference = float(error[up].mean() - error[down].mean())
        # The difference of the two means as a mean over all pairs.
        share = np.where(up, 1 / up.mean(), 0.0) - np.where(down, 1 / down.mean(), 0.0)
        centred = error - np.where(up, error[up].mean(), error[down].mean())
        reach = _reach(share * centred, self._queries)
        return Favour(challenger, difference, difference - reach, difference + reach)

    @cached_property
    def disagreements(self) -> pd.DataFrame:
        """query_id, doc_id, label, grade and difference (grade minus label) of the pairs that
        differ, the largest difference first."""
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
    """Return half the width of the interval of the mean; NaN if there are too few values."""
    return clustered_reach(values, queries, FAVOUR_LEVEL) if _enough(queries) else float("nan")


def _enough(queries: Integers) -> bool:
    """Return whether the pairs of these queries are enough for an interval."""
    return len(queries) >= FEWEST_PAIRS and len(np.unique(queries)) >= FEWEST_QUERIES


@dataclass(frozen=True)
class Favour:
    """The judge's bias in favour of a challenger: how much more it over-grades documents that the
    challenger ranks higher than documents that the baseline ranks higher, in grades, with its 95 %
    interval over queries; NaN if undefined, and for fewer than `FEWEST_PAIRS` pairs."""

    challenger: str
    difference: float
    low: float
    high: float

    @property
    def proven(self) -> bool:
        """True if the interval excludes 0: the judge favours one of the two."""
        return self.low > 0 or self.high < 0


def agreement(
    judgements: Judgements,
    labels: pd.DataFrame,
    *,
    threshold: float,
) -> JudgeAgreement:
    """Return the agreement of a judge with human labels: query_id, doc_id and label, one row per
    pair.

    If the highest label is not the judge's highest grade, the scales differ, and the two are
    compared as relevant or not (`_grade_cut`). Fewer than `_MANY_LABELS` labels below the judge's
    highest grade may be on its scale, unless all are 0 and 1.
    """
    # Labels of pairs that the judge did not grade are not compared.
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
    """Return the name of the system that ranks each pair of the pool higher; missing if both rank
    it the same. Index: query and document id."""
    before, after = (pool.ranks[pool.systems.index(name)] for name in (baseline, challenger))
    owner = np.full(len(pool), None, dtype=object)
    owner[after < before], owner[after > before] = challenger, baseline
    return pd.Series(owner, index=pool.index)


@dataclass(frozen=True)
class Repeats:
    """The agreement of a judge with itself: repeats over the pairs that all of them graded.

    same: the share of pairs with only one grade. kappa: the mean over pairs of repeats, unweighted;
        NaN if undefined, and for fewer than `FEWEST_PAIRS` pairs.
    """

    repeats: int
    pairs: int
    same: float
    kappa: float


def repeated(repeats: Sequence[Judgements]) -> Repeats:
    """Return the agreement of a judge's repeats, at least two."""
    table = pd.concat([each.graded.set_index(_PAIR)["label"] for each in repeats], axis=1).dropna()
    grades = table.to_numpy(dtype=np.float64)
    if not len(grades):
        return Repeats(len(repeats), 0, float("nan"), float("nan"))
    kappas = [
        cohen_kappa(grades[:, one], grades[:, other]).kappa
        for one in range(len(repeats))
        for other in range(one)
    ]
    defined = [kappa for kappa in kappas if not np.isnan(kappa) and len(grades) >= FEWEST_PAIRS]
    return Repeats(
        repeats=len(repeats),
        pairs=len(grades),
        same=float((grades == grades[:, :1]).all(axis=1).mean()),
        kappa=float(np.mean(defined)) if defined else float("nan"),
    )


# Circular judges: a judge that is a compared system, or shares a maker with one.
#
# Such a judge tends to prefer rankings of related models. Makers are recognised by the names of
# their models, which is a heuristic: a model with another name, or a model trained on a
# maker's output, is not recognised.

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
"""Maker → a pattern for the beginning of its models' names, or of a part of them."""

_PATTERNS = {
    maker: re.compile(rf"(?<![a-z0-9])(?:{names})(?![a-z])") for maker, names in _FAMILIES.items()
}


@dataclass(frozen=True)
class Circularity:
    """A system that is the judge itself (`same`), or shares its maker; maker is "" if unknown."""

    system: str
    same: bool
    maker: str


def circular(judge: str, systems: Mapping[str, Sequence[str]]) -> list[Circularity]:
    """Return the systems for which the judge may be biased.

    judge: its model, such as "gpt-4o-mini". systems: name → its models and names.
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
    """Return the makers in the name of a model: none, one, or several if it was derived from
    another's, such as a "DeepSeek-R1-Distill-Llama-8B"."""
    text = model.lower()
    return tuple(maker for maker, pattern in _PATTERNS.items() if pattern.search(text))


def _model(text: str) -> str:
    """Return the name without its owner: "openai/gpt-4o" and "gpt-4o" are equal."""
    return text.lower().strip().rsplit("/", 1)[-1]


# Cohen's kappa: the agreement of two raters beyond chance, with an interval.

_LEVEL = 0.95
Weighting = Literal["unweighted", "quadratic"]


@dataclass(frozen=True, eq=False)
class Kappa:
    """The agreement of two raters on n pairs.

    kappa: 1 for full agreement, 0 for chance agreement; NaN if both used only one and the same
        label, or there are no pairs. low, high: its 95 % interval, NaN if undefined.
    agree: the share of pairs with the same label. grades: (G,) the labels in use, ascending.
    table: (G, G) the number of pairs by the label of the first rater (rows) and of the second
        (columns).
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
    """Return kappa of (n,) labels of two raters for the same pairs.

    weighting: "quadratic" weights a disagreement by its squared distance in grades in use.
    clusters: (n,) the query of each pair, if whole queries were sampled: pairs of one query are
        correlated, so that the interval is wider. None if pairs were sampled.

    Sources: Cohen 1960 and 1968; the standard error of Fleiss, Cohen and Everitt 1969 or, over
        queries, of the same first-order terms summed by query.
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
    # With few pairs the interval would exceed the range of kappa.
    low, high = float(np.maximum(kappa - reach, -1.0)), float(np.minimum(kappa + reach, 1.0))
    return Kappa(kappa, low, high, agree, n, grades, table)


# The variance of a mean of clustered values, such as pairs of the same query: values of one cluster
# are correlated, so they carry less information than independent ones.


def clustered_reach(values: Floats, clusters: Integers, level: float) -> float:
    """Return half the width of the t interval of the mean of (n,) values, for (n,) numbers of
    clusters; NaN for fewer than two clusters.

    Source: Liang and Zeger 1986, the variance that is robust to clusters, G / (G - 1) included.
    """
    owners = np.unique(clusters, return_inverse=True)[1]
    count = int(owners.max(initial=-1)) + 1
    if count < 2:
        return float("nan")
    sums = np.bincount(owners, values - values.mean(), count)
    variance = float((sums**2).sum()) * count / (count - 1) / len(values) ** 2
    return float(special.stdtrit(count - 1, (1 + level) / 2) * np.sqrt(variance))
