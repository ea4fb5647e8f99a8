"""The verdict, its caveats, and the decision that sampled labels allow."""

from __future__ import annotations

import math

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext, number, paragraph, percent
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import html_safe
from rankdash.core.statistics.planning import POWER
from rankdash.core.statistics.verdict import PROVEN, Verdict
from rankdash.core.study import costs, latency
from rankdash.core.study.costs import hit_title
from rankdash.core.study.labelling import estimate_of
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.words.costs import MoneyContext, headline, month
from rankdash.core.words.labelling import estimate_step
from rankdash.core.words.queries import excluded
from rankdash.core.words.verdicts import change_fact, chip, documents, p_fact, sentence, tally
from rankdash.features.overview.caveats import caveats
from rankdash.kit.drawing import style
from rankdash.kit.drawing.draw import mark_image
from rankdash.kit.html import interval
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets import scenario, stored, view
from rankdash.kit.widgets.labels import plan
from rankdash.kit.widgets.labels.plan import Labelling
from rankdash.kit.widgets.text import markdown_safe, name_safe

# The sentence of a label is shown on hover and focus; screen readers read it instead of the label.
_STYLE = """<style>
.rd-verdict { position: relative; }
.rd-verdict :focus-visible { outline: 2px solid; outline-offset: 1px; }
.rd-verdict summary { list-style: none; cursor: pointer; }
.rd-line { display: flex; flex-wrap: wrap; align-items: center; gap: 0.35rem 1rem;
  line-height: 1.4; }
.rd-line > * { white-space: nowrap; }
.rd-line > b { font-size: 1.125rem; white-space: normal; overflow-wrap: anywhere; }
.rd-line img { vertical-align: -2px; margin-right: 0.4rem; }
.rd-word { border: 2px solid; border-radius: 6px; padding: 0 0.5rem; font-weight: 600; }
.rd-more::after { content: "▾"; } details[open] .rd-more::after { content: "▴"; }
.rd-verdict ul { list-style: none; padding: 0; margin: 0.5rem 0 0; font-size: 0.875rem; }
.rd-verdict .rd-caveats { display: flex; flex-wrap: wrap; gap: 0.4rem; }
.rd-verdict .rd-caveats li { margin: 0; padding: 0.05rem 0.6rem; border-radius: 1rem; cursor: help;
  border: 1px solid color-mix(in srgb, currentColor 40%, transparent); }
.rd-tip { position: absolute; left: 0; top: 100%; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); font-size: 0.875rem; line-height: 1.4; z-index: 9; }
summary:hover .rd-tip, summary:focus-visible .rd-tip, li:hover > .rd-tip, li:focus > .rd-tip {
  clip-path: none; width: max-content; max-width: min(100%, 46rem); height: auto;
  margin-top: 0.3rem; padding: 0.5rem 0.75rem; border-radius: 6px;
  border: 1px solid color-mix(in srgb, currentColor 40%, transparent); }
details[open] .rd-tip { position: static; clip-path: none; width: auto; height: auto;
  margin-top: 0.5rem; display: block; font-size: 1rem; }
details[open] summary .rd-tip { max-width: 100%; padding: 0; border: none; background: none; }
</style>"""
_INTERVAL_WIDTH, _TALLY_WIDTH = "10rem", "5rem"


def draw(study: Study, system: str) -> None:
    """Draw the verdict on a challenger in one line, and its caveats; the sentence and the details
    are folded."""
    safe = {each: html_safe(study.name(each)) for each in study.chosen}
    verdict = study.comparison.verdict(system, study.spec, safe)
    chips = "".join(
        f"<li tabindex=0 aria-labelledby=rd-caveat-{n}><span aria-hidden=true>"
        f"{each.label(study, html_safe)}</span>"
        f"<span class=rd-tip id=rd-caveat-{n}>{each.sentence(study, html_safe)}</span></li>"
        for n, each in enumerate(caveats(study, system))
    )
    facts = "".join(
        f"<li><b>{html_safe(fact)}</b> {html_safe(meaning)}</li>"
        for fact, meaning in _facts(study, system)
    )
    row = study.comparison.row(system, study.spec)
    # Without a change, the line shows too little.
    opened = "" if math.isfinite(row["delta"]) and verdict.kind != "too_few" else " open"
    label = html_safe(_p("heading", "Caveats"))
    st.html(
        f"{_STYLE}<style>.rd-tip {{ background: {widgets_charts.ink().hover}; }}</style>"
        f"<div class=rd-verdict><details{opened}><summary>{_line(study, system, verdict)}"
        f"<span class=rd-tip>{sentence(verdict)}</span></summary><ul>{facts}</ul></details>"
        + (f"<ul class=rd-caveats aria-label='{label}'>{chips}</ul>" if chips else "")
        + "</div>"
    )


def _line(study: Study, system: str, verdict: Verdict) -> str:
    """Return the verdict as one line of HTML, hidden from screen readers: they read the
    sentence."""
    row, name = study.comparison.row(system, study.spec), html_safe(study.name(system))
    mark = mark_image(style.marks(study.places, study.baseline)[system])
    proven = verdict.kind in PROVEN
    colour = interval.colour_of(row["delta"], proven=proven)
    parts = [
        f'<b><img src="{mark}" alt="">{name}</b>',
        f"<span class=rd-word style='border-color:{colour}'>{html_safe(chip(verdict.kind))}</span>",
    ]
    before, after = (float(str(verdict.params[end])) for end in ("before", "after"))
    if math.isfinite(row["delta"]):
        metric = html_safe(study.title)
        means = f"{metric} {number(before)} → <b>{number(after)}</b>"
        if study.stopped(system) or study.stopped(study.baseline):
            # The other means on the page are over more queries.
            over = ngettext("over {n} query", "over {n} queries", int(row["paired"]))
            means += f" {html_safe(over)}"
        parts.append(f"<span>{means}</span>")
    if math.isfinite(row["delta_low"]):
        ends = row["delta_low"], row["delta_high"]
        minimum = study.statistics.worthwhile
        threshold = None if minimum is None else minimum * before
        axis = interval.common_axis([*ends, *([] if threshold is None else [threshold])])
        parts.append(
            interval.interval_html(
                row["delta"], *ends, axis, change_fact(row, study.statistics),
                proven=proven, threshold=threshold, labelled=True, width=_INTERVAL_WIDTH,
            )
        )  # fmt: skip
    if row["paired"]:
        counts = int(row["helped"]), int(row["same"]), int(row["hurt"])
        words = tally(row)
        bar = interval.tally_html(*counts, words, width=_TALLY_WIDTH)
        parts.append(f"<span>{bar} {html_safe(words)}</span>")
    return (
        f"<span class=rd-line aria-hidden=true>{''.join(parts)}<span class=rd-more></span></span>"
    )


def _facts(study: Study, system: str) -> list[tuple[str, str]]:
    """Return (fact, meaning of its term); the meaning is "" if the fact is clear."""
    row = study.comparison.row(system, study.spec)
    facts = []
    if p := p_fact(row, study.statistics, "p_corrected"):
        meaning = _(
            "Probability of a change at least this large, in either direction, if the systems "
            "were equal. The corrected p also accounts for the other comparisons."
        )
        facts.append((p, meaning))
    split = study.headroom(system)
    share = split.share_won if split is not None else None
    if share is not None and share >= 0:
        realised = _("{share} of the potential gain realised", share=percent(share))
        own_list = split is not None and split.own
        fact = _("{fact} ({of})", fact=realised, of=documents(own_list)) if own_list else realised
        facts.append((fact, _("Potential gain: from the baseline to the best possible order.")))
    facts += [(fact, "") for fact in excluded(study.comparison.excluded(system, study.spec))]
    if math.isfinite(row["smallest_detectable"]):
        fact = _("minimum detectable change {n}", n=number(row["smallest_detectable"]))
        meaning = _(
            "Smallest true change that these queries prove in {power} of cases, at {level} "
            "confidence. Smaller changes are often missed.",
            power=percent(POWER),
            level=percent(row["planned_level"], 1),
        )
        facts.append((fact, meaning))
    return facts


# The decision that sampled labels allow: break-even, next step, links to other pages.


def draw_estimate_decision(study: Study, labelling: Labelling, page: str) -> None:
    """Draw, below the estimates of a plan, break-even and next step for each challenger.

    page: file name without extension; Cost shows break-even itself.
    """
    estimated = scenario.with_money(plan.estimated(study, labelling))
    money = estimated.money or Money()
    by_system = {each.system: each for each in costs.choices(estimated)}
    for challenger in estimated.challengers:
        estimate, choice = estimate_of(estimated, challenger), by_system[challenger]
        if estimate is None or estimated.labelling is None:
            continue
        if choice.option.gain is not None and page != "cost":
            st.markdown(headline(_context(estimated, money), choice, money.assumptions))
        priced = money.valued and not choice.unset
        step = estimate_step(estimated.labelling, estimate, choice, priced=priced)
        st.markdown(_("**Next step:** {step}", step=markdown_safe(step, 600)))
    _ways(labelling, page)


def _context(study: Study, money: Money) -> MoneyContext:
    return MoneyContext(
        currency=money.currency,
        metric=study.title,
        hit=hit_title(study),
        level=study.statistics.level,
        baseline=study.name(study.baseline),
        period=month(),
        safe=name_safe,
    )


def _ways(labelling: Labelling, page: str) -> None:
    """Draw links to the other pages that use the result of labelling."""
    conclusive = labelling.status.conclusive
    ways = {
        **({"overview": (_("See the verdict"), ":material/gavel:")} if conclusive else {}),
        "cost": (_("Cost & ROI"), ":material/payments:"),
        "report": (_("Make the report"), ":material/description:"),
        "label": (
            _("Continue labelling") if conclusive else _("Label documents"),
            ":material/label:",
        ),
    }
    with st.container(horizontal=True):
        for name, (label, icon) in ways.items():
            if name != page:
                view.link(name, label, icon)


def above_means(study: Study, page: str) -> bool:
    """Draw the notice above a page's means, if labels are missing or were added in rankdash.

    page: file name without extension.

    Returns whether to show means: if labels came with the data, or if every label that could change
    the difference exists. Sampled labels give an estimate only.
    """
    labelling = plan.current(study.stored_id)
    uploaded = stored.dataset(stored.stored(study.stored_id)).labelled_queries
    if labelling is None and uploaded:
        return True
    open_still = labelling is None or not labelling.complete
    sampled = plan.sampled(study.stored_id)
    means = sampled is None and (bool(uploaded) or not open_still)
    with st.container(border=True):
        if labelling is None:
            st.header(_("No labels yet"), anchor=False)
            st.write(
                _(
                    "Without labels, rankdash cannot determine which ranking is better. A few "
                    "hundred labels are usually enough: rankdash picks the documents to label and "
                    "reports when the result is conclusive."
                )
            )
            view.link("label", _("Label documents"), ":material/label:")
        elif means and open_still:
            plan.draw_label_count(labelling)
            _ways(labelling, page)
        else:
            plan.draw_estimate_strip(labelling)
            draw_estimate_decision(study, labelling, page)
    if means and open_still:
        st.caption(_("The means below count documents without a label as not relevant."))
    if sampled is not None:
        why = _(
            "The result uses {metric}: as a sum over documents, this metric can be estimated from "
            "sampled labels.",
            metric=sampled.metric,
        )
        missing = _(
            "The labels were sampled, so means, counts of queries and rank shifts computed "
            "from them would be wrong and are not shown."
        )
        st.caption(paragraph([why, missing]))
    if not uploaded and labelling is None:
        st.markdown(_("Available without labels:"))
        links = [("rank_shifts", _("agreement between systems, and document movements"))]
        if latency.timed(study):
            links.append(("latency", _("latency of each system")))
        for name, words in links:
            view.link(name, words, ":material/arrow_forward:")
    return means
