"""Labelling plan: form, notes, and expected number of labels."""

from __future__ import annotations

import math
import secrets
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import pairwise

import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import (
    duration,
    enumerated,
    error_text,
    moment,
    ngettext,
    number,
    paragraph,
    percent,
    plain,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.metrics import parse_measure
from rankdash.core.sampling.label_plan import ADDITIVE, MODES, VALUE_SHARE, LabelPlan
from rankdash.core.sampling.status import (
    DEFAULT_CUTOFF,
    SIMULATED_CUTOFFS,
    Effort,
    usual_effort,
)
from rankdash.core.statistics.verdict import PROVEN
from rankdash.core.study.judged import verdicts
from rankdash.core.study.leaderboard import best_challenger, standings
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.words.verdicts import change_fact, chip
from rankdash.core.workspace.notes import LONGEST_GUIDELINES, LabelPlans
from rankdash.features.label.page import REPLACED
from rankdash.kit.html import interval
from rankdash.kit.html.interval import parts_html
from rankdash.kit.widgets import address, dialogs, stored, view
from rankdash.kit.widgets.cache import cache
from rankdash.kit.widgets.labels import plan as labels_plan
from rankdash.kit.widgets.labels.plan import SCALES, Labelling, LabelSettings
from rankdash.kit.widgets.stored import read_only, workspace
from rankdash.kit.widgets.text import markdown_safe, paragraphs_safe, shortened

_DOUBLE = (0.0, 0.1, 0.2, 0.5, 1.0)
_DEEPEST = 100
# Seconds per label, a usual time.
_SECONDS = 10


def draw(dataset_id: str, before: Labelling | None) -> None:
    """Draw the form. before: the current labelling, which the new plan replaces; None without a
    plan."""
    if read_only():
        st.caption(_("This workspace is read-only: you cannot add anything here."))
        return
    systems = stored.systems(dataset_id)
    if len(systems) < 2:
        _one_ranking()
        return
    names = {each: shortened(system.name, 60) for each, system in systems.items()}
    effort = st.container()
    last = _usual(dataset_id) if before is None else before.settings
    compared = _compared(names, last)
    with st.expander(_p("heading", "Settings"), icon=":material/tune:", key="labelling.settings"):
        settings = _settings(dataset_id, compared, last, before)
        guidelines = st.text_area(
            _("Guidelines: what makes a document relevant"),
            value="" if before is None else before.kept.guidelines,
            max_chars=LONGEST_GUIDELINES,
            key="labelling.guidelines",
            placeholder=_("shown next to each document; optional"),
            help=_("Supports Markdown headings (#), lists (-) and emphasis (*)."),
        )
    if len(settings.systems) < 2:
        return
    with effort:
        possible = _offer(dataset_id, settings)
    if not possible:
        return
    if st.button(
        _("Start labelling"), type="primary", icon=":material/label:", key="labelling.start"
    ):
        seeded = replace(settings, seed=secrets.randbits(32))
        try:
            LabelPlans(workspace()).begin(dataset_id, asdict(seeded), guidelines)
        except RankdashError as error:
            dialogs.show_error(error_text(error))
            return
        st.rerun()


def _one_ranking() -> None:
    st.info(
        _(
            "There is only one ranking. Labelling compares two: upload another ranking with the "
            "data, or run a reranker."
        ),
        icon=":material/info:",
    )
    view.link("data", _("Go to Data"), ":material/database:")
    view.link("run", _("Run a reranker"), ":material/play_circle:")


def _compared(names: dict[str, str], last: LabelSettings) -> tuple[str, ...]:
    """Draw the choice of baseline and systems. last: settings that give the defaults."""
    left, right = st.columns(2)
    baseline = left.selectbox(
        _p("field", "Baseline"),
        list(names),
        index=list(names).index(last.systems[0]),
        format_func=names.__getitem__,
        key="labelling.baseline",
    )
    others = [each for each in names if each != baseline]
    challengers = right.multiselect(
        _("Systems to compare"),
        others,
        default=[each for each in others if each in last.systems] or others[-1:],
        format_func=names.__getitem__,
        key=f"labelling.challengers.{baseline}",
    )
    return baseline, *challengers


def _settings(
    dataset_id: str, systems: tuple[str, ...], last: LabelSettings, before: Labelling | None
) -> LabelSettings:
    """Draw the settings; return them with seed 0. last: settings that give the defaults."""
    measure = parse_measure(last.metric)
    left, right = st.columns(2)
    metric = left.selectbox(
        _p("field", "Metric"),
        ADDITIVE,
        index=ADDITIVE.index(measure.metric.name),
        format_func=lambda name: parse_measure(f"{name}@10").metric.title,
        key=f"labelling.metric.{measure.metric.name}",
        help=_(
            "An additive metric (a sum over documents) can be estimated from a sample of labels. "
            "NDCG, MAP and recall need all labels of a query."
        ),
    )
    depth = right.number_input(
        _("Cutoff k"),
        1,
        _DEEPEST,
        min(measure.k or _DEEPEST, _DEEPEST),
        key=f"labelling.depth.{measure.k}",
        help=_(
            "Documents in the first k of any ranking are labelled. The default is the cutoff that "
            "you chose in the sidebar, else {k}.",
            k=DEFAULT_CUTOFF,
        ),
    )
    mode = left.selectbox(
        _("Documents to label"),
        MODES,
        index=MODES.index(last.mode),
        format_func=_modes().__getitem__,
        key="labelling.mode",
        help=_(
            "All three give an unbiased result. The first needs the fewest labels. The last also "
            "gives queries with complete labels, which NDCG, MAP and recall need."
        ),
    )
    top = right.selectbox(
        _("Highest grade"),
        SCALES,
        index=SCALES.index(int(last.top)),
        format_func=lambda grade: (
            _("1: relevant or not") if grade == 1 else _("0 to {top}", top=grade)
        ),
        key="labelling.top",
    )
    double = left.selectbox(
        _("Share labelled by two annotators"),
        _DOUBLE,
        index=_DOUBLE.index(last.double) if last.double in _DOUBLE else 0,
        format_func=percent,
        key="labelling.double",
        help=_("Their agreement (kappa) shows how reliable the labels are."),
    )
    with right:
        judge = _judge(dataset_id, float(top), last.judge) if mode != "query" else ""
    changed = None if before is None or before.settings.top == top else before.settings.top
    return LabelSettings(
        systems=systems,
        metric=f"{metric}@{depth}",
        top=float(top),
        threshold=1.0,
        seed=0,
        double=double,
        mode=mode,
        keep=before is None or _keep(float(top), changed),
        before=changed,
        judge=judge,
        share=VALUE_SHARE,
    )


def _judge(dataset_id: str, top: float, last: str) -> str:
    """Draw the choice of a judge that predicts labels; return its id, or "" for none. Only judges
    with the same scale are offered."""
    judges = labels_plan.guessing(dataset_id, top)
    if not judges:
        scales = {row.top for row in stored.judge_rows(dataset_id).values() if row.graded}
        if scales:
            st.caption(
                _(
                    "A judge's grades can be used as predictions if the highest grade equals the "
                    "judge's: {grades}.",
                    grades=enumerated([number(each, 0) for each in sorted(scales)]),
                )
            )
        return ""
    options = ["", *judges]
    chosen: str = st.selectbox(
        _p("field", "Judge"),
        options,
        index=options.index(last) if last in options else 0,
        format_func=lambda each: (
            shortened(f"{judges[each].name} · {moment(judges[each].created)}", 80)
            if each
            else _p("choice", "none")
        ),
        key=f"labelling.judge.{top:g}",
        help=_(
            "Its grades are used as predictions, so fewer human labels are needed. They cannot "
            "bias the result, and annotators do not see them."
        ),
    )
    return chosen


def _usual(dataset_id: str) -> LabelSettings:
    """Return the default settings: the best challenger against the baseline, on the scale of
    existing labels."""
    values = stored.dataset(dataset_id).label_values
    top = min(max(int(values[-1]) if values else 1, 1), SCALES[-1])
    systems, base = stored.systems(dataset_id), address.one("base")
    baseline = base if base in systems else FIRST_STAGE
    others = tuple(each for each in systems if each != baseline)
    data = stored.dataset(dataset_id)
    study = Study(data, systems, baseline, others, dataset_id=dataset_id, cache=cache)
    return LabelSettings((baseline, _leader(study)), _usual_metric(), float(top), 1.0, seed=0)


def _usual_metric() -> str:
    """Return the metric and the cutoff that the user chose in the sidebar, if the metric is
    additive; by default DCG, and the default cutoff of plans."""
    metric = address.one("metric") if address.by_hand("metric") else None
    cutoff = view.cutoff_of(address.one("k")) if address.by_hand("k") else None
    name = metric if metric in ADDITIVE else ADDITIVE[0]
    return f"{name}@{min(cutoff or DEFAULT_CUTOFF, _DEEPEST)}"


def _leader(study: Study) -> str:
    """Return the best challenger by the labels; without labels, by the newest judge; without a
    judge, the newest run."""
    if study.dataset.labelled_queries:
        return best_challenger(study) or study.challengers[-1]
    graded = [row for row in stored.judge_rows(study.stored_id).values() if row.graded]
    if not graded:
        return study.challengers[-1]
    by_judge = verdicts(study, stored.judgements(graded[-1]))
    changes = {each: by_judge[each].three.judge.mean for each in study.challengers}
    return max(changes, key=lambda each: -math.inf if math.isnan(changes[each]) else changes[each])


def _modes() -> dict[str, str]:
    return {
        "weight": _("Documents with the largest weight in the difference"),
        "random": _("A random sample of documents"),
        "query": _("All documents of a query, one query after another"),
    }


def _keep(top: float, changed: float | None) -> bool:
    """Draw and return the choice whether existing labels count in a new plan, with a warning if the
    scale changes.

    top: the highest grade of the new plan. changed: of the previous scale; None if they are equal.
    """
    if changed is not None:
        st.warning(
            _(
                "The scale changes from 0–{before} to 0–{top}. The same grade may now have "
                "another meaning.",
                before=f"{changed:g}",
                top=f"{top:g}",
            ),
            icon=":material/straighten:",
        )
    options = {
        True: _("count, if they are on this scale"),
        False: _("do not count: label these documents again"),
    }
    return st.radio(
        _("Existing labels from rankdash"),
        options,
        format_func=options.__getitem__,
        key=f"labelling.keep.{changed is None}",
        help=_("They are kept in either case. Sampling restarts."),
    )


def _offer(dataset_id: str, settings: LabelSettings) -> bool:
    """Draw how many documents to label, or the reason if nothing can be labelled; return
    whether there is anything."""
    try:
        plan = labels_plan.offered(dataset_id, settings)
    except RankdashError as error:
        st.error(markdown_safe(error_text(error), 600), icon=":material/error:")
        return False
    if not len(plan.order):
        _draw_verdict(view.study("label"))
        st.success(
            _("All documents that can change the result have a label."), icon=":material/done_all:"
        )
        st.caption(paragraph(_facts(dataset_id, plan)))
        view.link("overview", _("See the verdict"), ":material/gavel:")
        return False
    _draw_efforts(dataset_id, len(plan.order), settings)
    st.caption(paragraph(_facts(dataset_id, plan)))
    return True


def _draw_verdict(study: Study) -> None:
    """Draw the verdicts of Overview on all compared systems, the best first, one line for each."""
    # Overview starts with the cutoff of a complete plan, else with 10.
    if address.one("k") is None:
        cutoff = labels_plan.complete_cutoff(study.stored_id)
        study = replace(study, cutoff=cutoff or 10)
    if not study.challengers:
        others = [each for each in study.systems if each != study.baseline]
        study = replace(study, challengers=tuple(others[-view.MOST_COMPARED :]))
    if not study.challengers or not study.dataset.labelled_queries:
        return
    rows = [row for row in standings(study) if row.system != study.baseline]
    ends = [end for row in rows for end in (row.delta, row.delta_low, row.delta_high)]
    axis, lines = interval.common_axis(ends), []
    for row in rows:
        title = _(
            "{challenger} against {baseline}: {verdict}",
            challenger=study.name(row.system),
            baseline=study.name(study.baseline),
            verdict=chip(row.kind),
        )
        compared = study.comparison.row(row.system, study.spec)
        change = f"{study.measure.title} {change_fact(compared, study.statistics)}".strip()
        picture = interval.interval_html(
            *(row.delta, row.delta_low, row.delta_high, axis, change),
            proven=row.kind in PROVEN,
            labelled=row is rows[0],
        )
        lines.append((title, picture, change))
    st.html(interval.rows_html(lines))


def _draw_efforts(dataset_id: str, count: int, settings: LabelSettings) -> None:
    """Draw the expected number of labels and their time, with the chosen cutoff, then with the
    other simulated ones. count: of all labels with the chosen cutoff."""
    measure = parse_measure(settings.metric)
    counts = {measure.k or 0: count}
    for cutoff in SIMULATED_CUTOFFS:
        metric = f"{measure.metric.name}@{cutoff}"
        # Without a plan, the rankings are equal within this cutoff.
        with suppress(RankdashError):
            other = labels_plan.offered(dataset_id, replace(settings, metric=metric))
            same = len(other.order) == count and _simulated(cutoff, count, settings) is None
            if not same:
                counts.setdefault(cutoff, len(other.order))
    for place, (cutoff, labels) in enumerate(counts.items()):
        _draw_effort(cutoff, labels, max(counts.values()), settings, chosen=not place)
    if len(counts) > 1:
        st.caption(
            _("The cutoff is the number of results that your users see. Change it under Settings.")
        )


def _simulated(cutoff: int, count: int, settings: LabelSettings) -> Effort | None:
    """Return the simulated effort with a cutoff; None if unknown, or if all labels are fewer."""
    estimate = usual_effort(cutoff, settings.mode, judge=bool(settings.judge))
    return None if estimate is None or count <= estimate.most_high else estimate


def _draw_effort(
    cutoff: int, count: int, most: int, settings: LabelSettings, *, chosen: bool
) -> None:
    """Draw the effort with a cutoff: a sentence, and a bar if it was simulated. count: of all
    labels. most: the count of the longest bar."""
    estimate = _simulated(cutoff, count, settings)
    all_time = duration(count * _SECONDS)
    figures = {"k": number(cutoff, 0), "n": number(count, 0), "seconds": _SECONDS}
    if estimate is None:
        at_most = ngettext(
            "Cutoff {k}: at most {n} label, about {time} at {seconds} seconds per label.",
            "Cutoff {k}: at most {n} labels, about {time} at {seconds} seconds per label.",
            count,
            time=all_time,
            **{name: figures[name] for name in ("k", "seconds")},
        )
        st.markdown(f"**{at_most}**" if chosen else at_most)
        return
    figures |= {name: number(labels, 0) for name, labels in asdict(estimate).items()}
    figures["short"] = duration(estimate.half_low * _SECONDS)
    figures["long"] = duration(estimate.half_high * _SECONDS)
    usually = _(
        "Cutoff {k}: usually {half_low} to {half_high} labels ({short} to {long}) until the result "
        "is conclusive; at most {most_high} in nine of ten cases.",
        **figures,
    )
    st.markdown(f"**{usually}**" if chosen else usually)
    words = _(
        "In simulations on three labelled data sets, 50% of the plans were conclusive after "
        "{half_low} to {half_high} labels ({short} to {long} at {seconds} seconds per label), "
        "depending on the data set, and 90% after {most_low} to {most_high}. Similar rankings may "
        "need all {n}.",
        **figures,
    )
    ends = (0, estimate.half_high, estimate.most_high, count)
    texts = (
        _("up to {n} labels: usually enough", n=figures["half_high"]),
        _("up to {n}: enough in nine of ten cases", n=figures["most_high"]),
        _("all: {n} labels, {time}", n=figures["n"], time=all_time),
    )
    steps = [end - start for start, end in pairwise(ends)]
    parts = list(zip(steps, texts, strict=True))
    st.html(parts_html(parts, words, width=f"{100 * count / most:.1f}%"))


def _facts(dataset_id: str, plan: LabelPlan) -> list[str]:
    pool, data = plan.pool, stored.dataset(dataset_id)
    facts = [
        ngettext(
            "{n} document can change the result.",
            "{n} documents can change the result.",
            int(plan.weighs.sum()),
        )
    ]
    if labelled := int(plan.weighs.sum()) - len(plan.order):
        facts.append(ngettext("{n} of them has a label.", "{n} of them have labels.", labelled))
    if pool.excluded:
        facts.append(
            ngettext(
                "{n} query is not in every ranking and is excluded.",
                "{n} queries are not in every ranking and are excluded.",
                len(pool.excluded),
            )
        )
    if textless := sum(doc in data.textless for doc in pool.doc_ids[plan.order]):
        facts.append(
            ngettext(
                "{n} of them has neither title nor text and is shown by its id.",
                "{n} of them have neither title nor text and are shown by their ids.",
                textless,
            )
        )
    return facts


# Notes for all documents of a plan: guidelines, keys, and labels that do not count.


def replaced() -> None:
    """Show once that another user started a new plan."""
    if st.session_state.pop(REPLACED, False):
        st.warning(
            _(
                "Another user started a new labelling plan. Earlier labels are stored; the last "
                "key may not have been saved."
            ),
            icon=":material/restart_alt:",
        )


def ended(dataset_id: str) -> None:
    """Show that the last plan has ended if it cannot be resumed."""
    if LabelPlans(workspace()).newest(dataset_id) is not None:
        st.info(
            _(
                "The last labelling plan has ended: one of its rankings was deleted, or another "
                "version of rankdash wrote the plan. Its labels are stored and count in the next "
                "plan."
            ),
            icon=":material/info:",
        )


def draw_plan_notes(labelling: Labelling) -> None:
    settings, stored_plan = labelling.settings, labelling.kept
    if stored_plan.guidelines:
        with st.container(border=True):
            st.markdown(
                f"**{_p('heading', 'Guidelines')}**\n\n{paragraphs_safe(stored_plan.guidelines)}"
            )
    st.caption(
        _(
            "Keys: digits for grades, U for “cannot tell”, B for back, P for pause. Keys are "
            "ignored for 0.6 s after a document appears."
        )
    )
    if excluded := labelling.plan.pool.excluded:
        st.caption(
            ngettext(
                "{n} query is not in every ranking and is excluded.",
                "{n} queries are not in every ranking and are excluded.",
                len(excluded),
            )
        )
    if settings.before is not None:
        changed = {
            "before": plain(settings.before),
            "top": plain(settings.top),
            "when": moment(stored_plan.created),
        }
        if settings.keep:
            st.caption(
                _(
                    "On {when}, the scale changed from 0–{before} to 0–{top}. Earlier labels that "
                    "are on the new scale count unchanged.",
                    **changed,
                )
            )
        else:
            st.caption(
                _(
                    "On {when}, the scale changed from 0–{before} to 0–{top}. Earlier labels do "
                    "not count.",
                    **changed,
                )
            )
    if labelling.off_scale:
        st.caption(
            ngettext(
                "{n} label is above the highest grade and does not count.",
                "{n} labels are above the highest grade and do not count.",
                labelling.off_scale,
            )
        )
