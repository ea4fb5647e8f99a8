"""Methods of the statistics, reasons and bounds, in sentences with formulas and thresholds."""

from __future__ import annotations

from collections.abc import Sequence

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import number, paragraph, percent, plain, quantity
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.rules import (
    FEWEST_QUERIES,
    STATISTICS_SETTINGS,
    Setting,
    StatisticsSettings,
)
from rankdash.core.metrics import CONVENTION_SETTINGS, Conventions
from rankdash.core.statistics.bootstrap import POISSON_FROM
from rankdash.core.statistics.inference import MANY_VALUES
from rankdash.core.statistics.planning import FEWEST_PLANNED, POWER
from rankdash.core.study.reasons.main_document import ONE_SIDED
from rankdash.core.study.reasons.reasons import CUT, NEAR, PAGE, REASONS
from rankdash.core.words.verdicts import p_title


def methods(
    settings: StatisticsSettings, corrected: bool, *, weighted: bool = False
) -> list[tuple[str, str]]:
    """Return title and method of every figure that is not a metric, under the given settings.

    corrected: whether the p of a verdict accounts for other comparisons. weighted: whether means
    are per search.
    """
    return [
        *([(_("Means per search"), _per_search())] if weighted else []),
        (_p("heading", "Interval"), _interval(settings)),
        (_p("heading", "p"), _of_p()),
        (_p("heading", "Verdict"), _verdict(settings, corrected)),
        (_("Minimum detectable change"), _detectable(settings)),
        (_("More queries needed"), _planned()),
        (_("Reasons for changes"), _reasons()),
        (_("Documents without a label"), _bounds()),
        (_("Cost and return"), cost()),
        (_p("heading", "Depth"), _depth()),
        (_("When not to rerank"), _skipping()),
    ]


def _per_search() -> str:
    return paragraph(
        [
            _(
                "Each query counts for its searches: frequency / sampling probability. Intervals "
                "use the variance within the strata of the sample; a bootstrap resamples within "
                "them. The permutation test flips the signs of the weighted changes."
            ),
            _(
                "No interval, p or verdict is computed if the effective number of queries, (Σw)² "
                "/ Σw², is below {fewest}: then a few queries carry most of the weight.",
                fewest=number(FEWEST_QUERIES, 0),
            ),
            _(
                "Numbers of queries, latency, the agreement of rankings, and the documents and "
                "tokens of a search are not weighted."
            ),
        ]
    )


def _interval(settings: StatisticsSettings) -> str:
    few = _(
        "No interval is computed for fewer than {fewest} queries, or for fewer than {many} "
        "queries of which only 1 or 2 change.",
        fewest=number(FEWEST_QUERIES, 0),
        many=number(MANY_VALUES, 0),
    )
    if settings.interval == "t":
        return paragraph([_("Student's t."), few])
    if settings.interval == "skew-t":
        return paragraph(
            [
                _(
                    "Student's t, and the same without the skewness (Hall 1992): each end is the "
                    "wider of both."
                ),
                few,
            ]
        )
    return paragraph(
        [
            _(
                "The queries are resampled {n} times with replacement; the interval comes from "
                "the means of these resamples.",
                n=number(settings.resamples, 0),
            ),
            _(
                "With {n} or more queries, each query gets a random weight (Poisson, mean 1) "
                "instead, so the number of queries in a resample varies.",
                n=number(POISSON_FROM, 0),
            ),
            _(
                "Resampled means equal to the observed mean count half as below it and half as "
                "above it."
            ),
            few,
        ]
    )


def _of_p() -> str:
    return paragraph(
        [
            _(
                "Probability of a change at least this large, in either direction, if the "
                "systems were equal. This is the raw p; the corrected p also accounts for the "
                "other comparisons."
            ),
            _(
                "With few changed queries, all combinations of signs are counted; otherwise as "
                "many random ones are sampled as the settings specify, and p = (b + 1) / (m + "
                "1) for b of m samples."
            ),
            _("The Wilcoxon test excludes the queries that did not change at all."),
        ]
    )


def _verdict(settings: StatisticsSettings, corrected: bool) -> str:
    proven = _(
        "A change is proven if its interval excludes 0 and the {p} is at most {alpha}.",
        p=p_title(corrected),
        alpha=f"{1 - settings.level:.4g}",
    )
    minimum = (
        _("No minimum practically relevant gain is set, so a proven gain of any size is “better”.")
        if settings.worthwhile is None
        else _(
            "A proven gain is small if it is below {worthwhile} of the baseline's mean (set by "
            "the user).",
            worthwhile=f"{quantity(100 * settings.worthwhile, 6)}%",
        )
    )
    sentences = [proven, minimum]
    if settings.equal_margin is not None:
        sentences.append(
            _(
                "A change that is not proven is “as good as” if two one-sided tests exclude a "
                "change of {margin} (set by the user) or more, up and down, at the corrected "
                "level.",
                margin=plain(settings.equal_margin),
            )
        )
    sentences.append(
        _("A verdict needs at least {fewest} queries.", fewest=number(FEWEST_QUERIES, 0))
    )
    return paragraph(sentences)


def _detectable(settings: StatisticsSettings) -> str:
    return paragraph(
        [
            _(
                "The true change that this many queries prove in {power} of all cases (its "
                "power): (t₁ + t₂) · s / √n, where n is the number of queries, s the standard "
                "deviation of their changes, and t₁ and t₂ the quantiles of Student's t for 1 − "
                "α/2 and {power}.",
                power=percent(POWER),
            ),
            _(
                "α is {alpha}, divided by the number of comparisons if these are corrected. A "
                "smaller change can be proven too, but in fewer cases.",
                alpha=f"{1 - settings.level:.4g}",
            ),
            _(
                "Not shown if all changes are equal, or if no order of the ranked documents "
                "could gain that much."
            ),
        ]
    )


def _planned() -> str:
    return paragraph(
        [
            _(
                "Queries are resampled from the present ones and added to them, until {power} of "
                "the resamples are significant by the chosen test at the corrected level.",
                power=percent(POWER),
            ),
            _(
                "The range covers true changes within the middle half of the interval: for "
                "each, the resamples are weighted so that their mean is that change. If this "
                "half includes 0, no number is shown."
            ),
            _(
                "No verdict with fewer than {n} queries.",
                n=number(FEWEST_PLANNED, 0),
            ),
        ]
    )


def _reasons() -> str:
    return paragraph(
        [
            _(
                "Each query gets the first reason that applies, in this order: {reasons}.",
                reasons=" → ".join(_p("reason", each.title) for each in REASONS),
            ),
            _(
                "The main document is the relevant one that lost most (or gained most, if the "
                "query was helped). A change is one-sided if the smaller of gains and losses is "
                "at most {half} of the larger. These reasons need a one-sided change: near-tie, "
                "text truncated, relevant dropped out, irrelevant promoted, unjudged promoted.",
                half=percent(ONE_SIDED),
            ),
            _(
                "Near-tie: the main document causes at least {half} of the change, and its "
                "score is within {near} of the list's range of the score at its former rank. "
                "Text truncated: the model read at most {cut} of its tokens. Relevant dropped "
                "out: it left the first k, or the first {page} if the metric has no k. "
                "Irrelevant promoted: of the documents that overtook it within k, those judged "
                "worse are at least as many as those without a label; otherwise unjudged "
                "promoted.",
                half=percent(ONE_SIDED),
                near=percent(NEAR),
                cut=percent(CUT),
                page=number(PAGE, 0),
            ),
            _(
                "Already ideal and no effect: within the tie band; the baseline's list could "
                "not be ordered better, or neither gains nor losses exceed the band. Relevant "
                "moved up: helped, and one-sided or as high as the list can be ordered. Scores "
                "that fall in even steps are ranks, which cannot have a near-tie."
            ),
            _(
                "Relevant below the cutoff: within the tie band, but in the best order of a list "
                "the documents below its first k would add more than the band. Nothing judged: "
                "none of the first k of either list has a label, and nothing below would add that "
                "much."
            ),
        ]
    )


def _bounds() -> str:
    return _(
        "Each document without a label that a system ranks within k (anywhere if the metric has "
        "no k) may turn out to have any grade from 0 to the highest grade among the labels. "
        "Documents further down count as not relevant, as in pooling."
    )


def cost() -> str:
    """Return how the intervals of cost and return are computed, and when each answer applies."""
    return paragraph(
        [
            _(
                "Cost and return use the verdict's interval and answer. The interval of a relative "
                "change includes the uncertainty of the baseline's mean (delta method; with a "
                "bootstrap, the ratio in the same resamples): both intervals exclude 0, or neither "
                "does."
            ),
            _(
                "Every amount is the formula at the measured change and at both ends of that "
                "interval. If tickets or working time count, the change of the hit rate is at "
                "the same end of its interval, which makes the interval wider rather than "
                "narrower. An end at which it does not pay off is “never”."
            ),
            _(
                "“Pays off”: the net at the lower end is above 0; an unproven gain counts as 0. "
                "“Probably pays off”: the gain is proven and the net is above 0, but its "
                "interval includes a loss. “Not proven”: one of the changes that count is not "
                "proven, by its interval or by its p."
            ),
        ]
    )


def _depth() -> str:
    return _(
        "A gain over not reranking is proven by the same rule, with p corrected for the number "
        "of depths. At full depth it is the verdict itself; the verdict also applies to depths "
        "with an equally small p. A depth is within noise of the best if it is not proven to be "
        "worse than the best."
    )


def _skipping() -> str:
    return _(
        "A rule is safe if the interval of its effect stays above the acceptable loss on "
        "held-out queries. The margin is proven to pick the right queries if the interval of its "
        "advantage over chance is above 0 and its p, for this one comparison, is significant."
    )


# The metric conventions and settings of the statistics, in words.

_BY_ITSELF = "auto"


def rules_in_words(rules: Conventions, statistics: StatisticsSettings) -> list[tuple[str, str]]:
    """Return title and current value of every convention and setting of the statistics; of the
    weights only if means are per search."""
    return [*in_words(_shown(rules), rules), *in_words(STATISTICS_SETTINGS, statistics)]


def rule_meanings(rules: Conventions) -> list[str]:
    """Return the explanations of `rules_in_words`, in the same order."""
    return [_(each.help) for each in (*_shown(rules), *STATISTICS_SETTINGS)]


def _shown(rules: Conventions) -> list[Setting]:
    return [each for each in CONVENTION_SETTINGS if each.name != "weights" or rules.weighted]


def in_words(settings: Sequence[Setting], values: object) -> list[tuple[str, str]]:
    """Return title and current value of every setting. values: an object with the settings as
    attributes."""
    sentences = []
    for setting in settings:
        value = getattr(values, setting.name)
        sentences.append(
            (_p("setting", setting.title), options_of(setting, (value,))[key_of(value)])
        )
    return sentences


def options_of(setting: Setting, numbers: Sequence[float | None]) -> dict[str, str]:
    """Return value as written in the address → words, for each option of a setting."""
    default = setting.default
    if setting.choices:
        return {value: _p("choice", meaning) for value, meaning in setting.words.items()}
    if isinstance(default, bool):
        return {key_of(False): _p("answer", "no"), key_of(True): _p("answer", "yes")}
    values = {value for value in (default, *numbers) if isinstance(value, (int, float))}
    words = {
        key_of(value): plain(value) if isinstance(value, float) else str(value)
        for value in sorted(values)
    }
    return {_BY_ITSELF: _p("choice", setting.unset), **words} if default is None else words


def key_of(value: object) -> str:
    if value is None:
        return _BY_ITSELF
    return f"{value:g}" if isinstance(value, float) else str(value)
