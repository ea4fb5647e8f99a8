"""Sections of the report: verdict, estimates, kinds of queries, and reasons for changes."""

from __future__ import annotations

import math

from rankdash.core.base.i18n import (
    all_of,
    enumerated,
    level_percent,
    ngettext,
    number,
    paragraph,
    percent,
    signed,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import html_safe
from rankdash.core.sampling.estimate import Estimate
from rankdash.core.study import latency
from rankdash.core.study.groups import DerivedSegment
from rankdash.core.study.judged import headline, verdicts
from rankdash.core.study.labelling import estimate_of
from rankdash.core.words import costs as cost_words
from rankdash.core.words import prices
from rankdash.core.words.judged import (
    bias_sentence,
    judge_caveats,
    judge_warnings,
    judged_sentence,
    three_ways,
    without_judge,
    worth_sentence,
)
from rankdash.core.words.labelling import (
    estimate_chip,
    estimate_risks,
    estimate_sentence,
    estimate_step,
    relative_sentence,
)
from rankdash.core.words.latency import milliseconds, without_p95
from rankdash.core.words.queries import excluded_text
from rankdash.core.words.verdicts import (
    change_interval,
    chip,
    documents,
    is_corrected,
    notes,
    p_title,
    p_value,
    reason_meanings,
    reason_words,
    sentence,
)
from rankdash.features.judge import charts as judge_charts
from rankdash.features.overview import charts
from rankdash.features.overview.charts import DERIVED
from rankdash.kit.html import interval
from rankdash.kit.html.html_page import (
    DASH,
    Draft,
    PageTable,
    as_table,
    listed,
    prose,
    table,
    together,
)


def draw(draft: Draft) -> str:
    study = draft.study
    parts = [_one(draft, challenger) for challenger in study.challengers]
    if parts:
        parts.append(prose(_care(draft), "muted"))
    else:
        row = study.comparison.row(study.baseline, study.spec)
        text = _(
            "The report covers only {system}, so it contains no comparison. Mean {metric}: {mean}.",
            system=study.name(study.baseline),
            metric=study.title,
            mean=number(row["mean"]),
        )
        parts.append(prose(text))
    return "".join(parts)


def _one(draft: Draft, challenger: str) -> str:
    study = draft.study
    above = headline(study, challenger)
    kind = study.comparison.row(challenger, study.spec)["verdict"] if above is None else above.kind
    verdict = study.comparison.verdict(challenger, study.spec, study.names)
    facts = "".join(
        f"<div><dt>{html_safe(title)}</dt><dd>{html_safe(value)}</dd>"
        f"<dd class=muted>{html_safe(beside)}</dd></div>"
        for title, value, beside in _facts(draft, challenger)
    )
    worth = cost_words.headline(draft.context, draft.choice(challenger), draft.money.assumptions)
    return (
        f'<div class="verdict {html_safe(str(kind))}">'
        f"<h3><span class=tag>{html_safe(chip(str(kind)))}</span> "
        f"{html_safe(draft.against(challenger))}</h3>"
        f"{_judged(draft, challenger)}{prose(sentence(verdict))}<dl class=facts>{facts}</dl>"
        f"{prose(worth)}{_left_out(draft, challenger)}</div>"
    )


def _judged(draft: Draft, challenger: str) -> str:
    """Return the judge's verdict on a challenger: sentences, the three estimates, charts and
    caveats."""
    study = draft.study
    if study.judge is None:
        return ""
    verdict = verdicts(study, study.judge)[challenger]
    rows = [
        [
            title,
            signed(change.mean, 4),
            change_interval(change.low, change.high),
            number(change.n, 0),
        ]
        for title, change in three_ways(verdict.three)
    ]
    metric, level = study.title, level_percent(study.statistics.level)
    head = (
        _p("column", "method"),
        _("change in {metric}", metric=metric),
        _("{level} interval", level=level),
    )
    sentences = [
        bias_sentence(study, verdict),
        judged_sentence(study, verdict),
        worth_sentence(verdict),
    ]
    return "".join(
        [
            prose(paragraph([each for each in sentences if each])),
            table(PageTable((*head, _p("column", "queries")), rows, numbers=frozenset((1, 2, 3)))),
            draft.chart(judge_charts.three_ways(study, challenger)),
            draft.chart(judge_charts.label_curve(study, challenger)),
            listed(
                [
                    *(_("Warning: {text}", text=each) for each in judge_warnings(study, verdict)),
                    *judge_caveats(study, verdict),
                ]
            ),
            prose(without_judge(), "muted"),
        ]
    )


def _facts(draft: Draft, challenger: str) -> list[tuple[str, str, str]]:
    """Return (title, value, note) of each fact."""
    study = draft.study
    row = study.comparison.row(challenger, study.spec)
    level = level_percent(study.statistics.level)
    ends = change_interval(row["delta_low"], row["delta_high"])
    facts = [
        (
            _("change in {metric}", metric=study.title),
            signed(row["delta"]),
            "" if ends == DASH else _("{level}: {interval}", level=level, interval=ends),
        ),
        (
            _("helped · same · hurt"),
            " · ".join(number(row[each], 0) for each in ("helped", "same", "hurt")),
            ngettext("{n} query", "{n} queries", int(row["paired"])),
        ),
    ]
    if math.isfinite(row["p_corrected"]):
        by_chance = (
            _("probability of such a change if the systems were equal")
            if row["p"] == row["p_corrected"]
            else _(
                "probability of such a change if the systems were equal; uncorrected p {p}",
                p=p_value(row["p"]),
            )
        )
        facts.append(
            (p_title(is_corrected(row, study.statistics)), p_value(row["p_corrected"]), by_chance)
        )
    split = study.headroom(challenger)
    share = None if split is None else split.share_won
    # If reranking lowered the metric, a share of the potential gain is meaningless.
    if share is not None and share >= 0:
        facts.append(
            (
                _("potential gain realised"),
                percent(share),
                _("of the gain of a perfect order of the same documents"),
            )
        )
    summary = latency.summary(study, challenger)
    p95 = None if summary is None else summary.p95
    facts.append(
        (
            _("p95 latency"),
            milliseconds(p95),
            without_p95(0 if summary is None else summary.n)
            if summary is None or p95 is None
            else ngettext(
                "95% of the {n} timed query took at most this long",
                "95% of the {n} timed queries took at most this long",
                summary.n,
            ),
        )
    )
    choice = draft.choice(challenger)
    cost, _interval = cost_words.cell(choice.outcome.cost_per_thousand, draft.money.currency)
    beside = ""
    if choice.bill is not None:
        beside = all_of(prices.marks(choice.bill))
    if choice.bill is not None and choice.bill.lack:
        cost, beside = _("not set"), prices.lack(choice.bill)
    elif choice.example:
        beside = _("{part}: {value}", part=beside, value=cost)
        cost = _("not set")
    facts.append((_("cost of 1,000 searches"), cost, beside))
    return facts


def _care(draft: Draft) -> str:
    """Return sentences on prices and assumptions: their place in the report, examples, and
    defaults."""
    rests = _("Prices and assumptions are listed under “Cost and break-even”.")
    if draft.examples:
        examples = enumerated(draft.examples)
        unset = _("**Price not set: {systems}.**", systems=examples)
        if draft.money.example:
            unset = _("Example prices are used for: {systems}.", systems=examples)
        rests = paragraph([rests, unset])
    return paragraph([each for each in (rests, prices.defaults(draft.money)) if each])


def _left_out(draft: Draft, challenger: str) -> str:
    text = excluded_text(draft.study.comparison.excluded(challenger, draft.study.spec))
    return prose(text) if text else ""


# The first page of a report on sampled labels: estimates, costs, risks and next step.


def draw_estimates(draft: Draft) -> str:
    """Draw a box for each challenger that the labels were sampled for."""
    return "".join(_one_estimates(draft, challenger) for challenger in draft.study.challengers)


def _one_estimates(draft: Draft, challenger: str) -> str:
    study, choice = draft.study, draft.choice(challenger)
    estimate = estimate_of(study, challenger)
    if estimate is None or study.labelling is None:
        return ""
    step = estimate_step(
        study.labelling, estimate, choice, priced=draft.money.valued and not choice.unset
    )
    parts = [
        (
            _p("heading", "Findings"),
            prose(relative_sentence(estimate), "lead")
            + _drawn(estimate)
            + prose(estimate_sentence(estimate)),
        ),
        (
            _p("heading", "Cost"),
            prose(cost_words.headline(draft.context, choice, draft.money.assumptions)),
        ),
        (_p("heading", "Risk"), listed(estimate_risks(estimate))),
    ]
    return "".join(
        [
            f'<div class="verdict {estimate.kind}"><h3><span class=tag>'
            f"{html_safe(estimate_chip(estimate))}</span> "
            f"{html_safe(draft.against(challenger))}</h3>",
            *(f"<h4>{html_safe(title)}</h4>{inside}" for title, inside in parts),
            f"<div class=step><h4>{html_safe(_('Next step'))}</h4>"
            f"<p><strong>{html_safe(step)}</strong></p></div></div>",
        ]
    )


def _drawn(estimate: Estimate) -> str:
    """Return the difference with its interval as HTML; "" if there is none yet."""
    ends = estimate.difference, estimate.low, estimate.high
    if not all(map(math.isfinite, ends)):
        return ""
    axis = interval.common_axis(ends)
    words = change_interval(estimate.low, estimate.high)
    return "<p>{}</p>".format(
        interval.interval_html(
            *ends, axis, words, proven=estimate.conclusive, labelled=True, width="16rem"
        )
    )


# Kinds of queries, reasons for changes, and the split of the best possible mean.


def segments(draft: Draft) -> str:
    parts = [_segments(draft, challenger) for challenger in draft.study.challengers]
    if not any(parts):
        return prose(_("No grouping of the queries has two groups to compare."))
    text = {name for each in draft.study.challengers for name in _listed_names(draft, each)}
    omitted = [name for name in draft.study.segments if name not in text]
    notes = [
        _(
            "The grouping was chosen after the results were known, so a difference is not a "
            "proof: test it on new queries."
        ),
        *(
            draft.explained(
                _p("segment", each.title), _(each.meaning), _(each.note) if each.note else ""
            )
            for name, each in _derived(draft).items()
            if name in text
        ),
    ]
    if omitted:
        titles = [
            _p("segment", _derived(draft)[n].title) if n in _derived(draft) else n for n in omitted
        ]
        notes.append(
            _(
                "Omitted because all queries have the same value, or almost every query has a "
                "different one: {columns}.",
                columns=enumerated(titles),
            )
        )
    return "".join(parts) + listed(notes)


def _derived(draft: Draft) -> dict[str, DerivedSegment]:
    """Return the derived segments, except those with the name of a column of the data."""
    dataset_segments = draft.study.dataset.segments
    return {name: each for name, each in DERIVED.items() if name not in dataset_segments}


def _listed_names(draft: Draft, challenger: str) -> set[str]:
    rows = charts.groups(draft.study, challenger)
    return set() if rows.empty else set(rows["name"])


def _segments(draft: Draft, challenger: str) -> str:
    study = draft.study
    rows = charts.groups(study, challenger)
    if rows.empty:
        return ""
    cells = [
        (
            str(row["segment"]),
            str(row["value"]),
            number(row["n"], 0),
            f"{number(row['before'])} → {number(row['after'])}",
            signed(row["delta"]),
            change_interval(row["low"], row["high"]),
            p_value(row["p_corrected"]),
            " · ".join(number(row[each], 0) for each in ("helped", "same", "hurt")),
        )
        for _at, row in rows.iterrows()
    ]
    head = (
        *(
            _("grouped by"),
            _p("column", "group"),
            _p("column", "queries"),
            study.title,
            _p("column", "change"),
        ),
        _("{level} interval of the change", level=level_percent(study.statistics.level)),
        *(p_title(charts.groups_corrected(study, rows)), _("helped · same · hurt")),
    )
    first, *rest = [
        *(draft.titled(each) for each in charts.segments(study, challenger)),
        "",
    ]
    return "".join(
        [
            together(f"<h3>{html_safe(draft.against(challenger))}</h3>", first),
            *rest,
            as_table(PageTable(head, cells, frozenset(range(2, 8)))),
        ]
    )


def reasons(draft: Draft) -> str:
    study = draft.study
    parts = [_headroom(draft)]
    for challenger in study.challengers:
        counts = study.reason_counts(challenger)
        if counts is None:
            text = _(
                "{metric} cannot be split by document, so its changes have no reasons.",
                metric=study.title,
            )
            parts.append(prose(text))
            break
        words, meanings = reason_words(), reason_meanings()
        rows = [
            (
                words[str(code)],
                number(row["queries"], 0),
                signed(row["mean"]),
                signed(row["adds"]),
                meanings[str(code)],
            )
            for code, row in counts.iterrows()
        ]
        out = excluded_text(study.comparison.excluded(challenger, study.spec))
        head = (
            _p("column", "reason"),
            _p("column", "queries"),
            _("mean change"),
            _("adds to the mean"),
            _p("column", "meaning"),
        )
        parts.append(
            f"<h3>{html_safe(draft.against(challenger))}</h3>"
            f"{table(PageTable(head, rows, frozenset((1, 2, 3))))}"
            f"{prose(out, 'muted') if out else ''}"
        )
    return "".join(parts)


def _headroom(draft: Draft) -> str:
    study = draft.study
    drawn = charts.headroom(study)
    if drawn is None:
        return ""
    rows = []
    for challenger in study.challengers:
        split = study.headroom(challenger)
        if split is None or not split.n:
            continue
        # If reranking lowered the metric, a share of the potential gain is meaningless.
        won = split.share_won if split.share_won is not None and split.share_won >= 0 else None
        rows.append(
            (
                study.name(challenger),
                *(number(each) for each in (split.baseline, split.won, split.to_win)),
                number(split.retriever),
                number(split.perfect),
                DASH if won is None else percent(won),
                documents(split.own),
            )
        )
    text = _(
        "The best possible mean splits exactly into four: the baseline, what reranking gained, "
        "what a perfect order of the same documents would still gain, and what no reranker can "
        "gain because the documents are not in the system's list."
    )
    text = paragraph([text, *notes(study)])
    head = (
        *(
            _p("column", "system"),
            _p("column", "baseline"),
            _p("column", "realised"),
            _("potential gain left"),
            _("not in its list"),
        ),
        *(_("best possible"), _("potential gain realised"), _("documents reordered")),
    )
    content = PageTable(head, rows, frozenset(range(1, 7)))
    return together(prose(text), draft.chart(drawn)) + as_table(content)
