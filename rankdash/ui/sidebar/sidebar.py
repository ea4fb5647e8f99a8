"""The sidebar and the caption that every page shares, and the `View` they add up to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import streamlit as st

from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.i18n import LANGUAGES, moment, ngettext
from rankdash.i18n import gettext as _
from rankdash.metrics import Conventions, parse_measure, registry
from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.pins import Pins
from rankdash.ui.sidebar import rules
from rankdash.ui.state import address, language, services
from rankdash.ui.state.server import read_only, workspace
from rankdash.ui.widgets.text import markdown_safe

PAGES = Path(__file__).parents[3] / "pages"
CUTOFFS = (1, 2, 3, 5, 10, 15, 20, 30, 50, 100)
LARGEST_CUTOFF = 1000
WHOLE_LIST = "all"
MOST_COMPARED = 4
# The field of the address that says which labels are in force where some were corrected.
LABELS = "labels"
CORRECTED, UPLOADED = "corrected", "uploaded"


@dataclass(frozen=True)
class View:
    """What is being looked at. `cutoff` is None for the whole list. `dataset_id` is that of the
    labels in force (see `services`); `corrections` says how many labels were corrected, in force or
    not."""

    dataset_id: str
    systems: dict[str, services.System]
    baseline: str
    challengers: tuple[str, ...]
    metric: str
    cutoff: int | None
    conventions: Conventions
    statistics: StatisticsSettings
    corrections: int = 0

    @property
    def stored_id(self) -> str:
        """The data set as it was uploaded: what notes and corrections are kept by."""
        return services.stored(self.dataset_id)

    @property
    def corrected(self) -> bool:
        """Whether corrected labels are in force."""
        return self.dataset_id != self.stored_id

    @property
    def spec(self) -> str:
        return self.spec_of(self.metric)

    @property
    def measures_quality(self) -> bool:
        """Whether the metric says something of quality."""
        return parse_measure(self.spec).metric.measures_quality

    def spec_of(self, metric: str) -> str:
        """The metric at the chosen cutoff, where it has one."""
        has_cutoff = registry[metric].has_cutoff and self.cutoff is not None
        return f"{metric}@{self.cutoff}" if has_cutoff else metric

    def title(self, spec: str) -> str:
        return parse_measure(spec).title

    def name(self, system_id: str) -> str:
        """The system's name, as it was typed: not safe for Markdown."""
        return self.systems[system_id].name

    @property
    def chosen(self) -> tuple[str, ...]:
        """Baseline and challengers."""
        return (self.baseline, *self.challengers)


def page(name: str) -> Path:
    """The file of a page, for links."""
    return PAGES / f"{name}.py"


def go(name: str) -> NoReturn:
    """Open another page with what is chosen, in one step of the browser's history: a page that is
    opened without its address writes it afterwards, and then going back takes two."""
    st.switch_page(page(name), query_params=address.carried())


def choose_language() -> None:
    """Put the language of the address, else the browser's, into the session."""
    chosen = address.one("lang")
    if chosen not in LANGUAGES:
        wanted = (st.context.locale or "en").split("-")[0]
        chosen = wanted if wanted in LANGUAGES else "en"
    st.session_state[language.STATE] = chosen


def draw_sidebar(*, analysis: bool) -> None:
    """Data set and language everywhere; systems, metric and rules where numbers are shown."""
    with st.sidebar:
        if read_only():
            st.caption(
                _(":material/visibility: **Read only.** Look at everything; nothing is changed.")
            )
        rows = {row.id: row for row in workspace().datasets()}
        dataset_id = address.pick_one(
            "data",
            list(rows),
            st.selectbox,
            label=_("Data set"),
            format_func=lambda value: (
                _("{name} (sample)", name=rows[value].name)
                if rows[value].source == "sample"
                else rows[value].name
            ),
            # What was chosen within one data set is no choice in the next, even where an id is in
            # both: the first stage is in every one, and the next may have a pinned baseline.
            clears=address.OF_A_DATA_SET,
        )
        if dataset_id and analysis:
            _draw_comparison(dataset_id)
            rules.draw(services.positive_labels(dataset_id))
        if dataset_id is None:
            address.settle("data", None)
        address.pick_one(
            "lang",
            list(LANGUAGES),
            st.segmented_control,
            default=st.session_state[language.STATE],
            label=_("Language"),
            format_func=LANGUAGES.__getitem__,
            required=True,
        )
    address.publish()


def _draw_comparison(dataset_id: str) -> None:
    systems = services.systems(dataset_id)
    pinned = Pins(workspace()).of(dataset_id)
    baseline = address.pick_one(
        "base",
        list(systems),
        st.selectbox,
        default=pinned,
        label=_("Baseline"),
        help=_(
            "What every other system is compared with. The first stage is the order before any "
            "reranking. A run that is pinned on the page History "
            "is taken where a link names none."
        ),
        format_func=lambda value: (
            _("{name} (pinned)", name=systems[value].name)
            if value == pinned
            else systems[value].name
        ),
    )
    others = [system for system in systems if system != baseline]
    # A quick look at a few queries is compared when asked for, and not by default.
    whole = [name for name in others if not (run := systems[name].run) or not run.queries_skipped]
    address.pick_several(
        "system",
        others,
        st.multiselect,
        default=(whole or others)[-MOST_COMPARED:],
        label=_("Compared with it"),
        placeholder=_("none") if others else _("no other system yet"),
        disabled=not others,
        format_func=lambda value: systems[value].name,
    )
    metric = address.pick_one(
        "metric",
        [name for name in registry if name != "judged"],
        st.selectbox,
        default="ndcg",
        label=_("Metric"),
        format_func=lambda value: _(registry[value].title),
        help=_("What it measures, its formula and its source are at the foot of Overview."),
    )
    if metric is not None and registry[metric].has_cutoff:
        cutoffs = sorted({*CUTOFFS, _cutoff(address.one("k")) or 10})
        address.pick_one(
            "k",
            [*(str(k) for k in cutoffs), WHOLE_LIST],
            st.select_slider,
            default="10",
            label=_("Cutoff k"),
            format_func=lambda value: _("all") if value == WHOLE_LIST else value,
            help=_("How far down the list a searcher looks."),
        )


def _cutoff(value: str | None) -> int | None:
    """A cutoff from the address: 1 to `LARGEST_CUTOFF`, else None."""
    if value and value.isascii() and value.isdigit() and 0 < int(value[:5]) <= LARGEST_CUTOFF:
        return int(value[:5])
    return None


def view() -> View:
    """What is chosen now. Without a data set the page says so and stops."""
    uploaded = address.one("data")
    if uploaded is None:
        nothing_yet(
            _("No data set yet"),
            _(
                "rankdash compares rankings of your own labelled queries. Open the sample or drop "
                "your files to begin."
            ),
            "data",
            _("Go to Data"),
        )
    layer = Corrections(workspace()).layer(uploaded)
    in_force = layer.count and address.one(LABELS) != UPLOADED
    dataset_id = services.with_corrections(uploaded, layer.revision) if in_force else uploaded
    systems = services.systems(dataset_id)
    baseline = address.one("base") or services.FIRST_STAGE
    return View(
        dataset_id=dataset_id,
        systems=systems,
        baseline=baseline,
        challengers=tuple(name for name in address.several("system") if name != baseline),
        metric=address.one("metric") or "ndcg",
        cutoff=_cutoff(address.one("k")),
        conventions=rules.conventions(),
        statistics=rules.statistics(len(services.dataset(dataset_id).queries)),
        corrections=layer.count,
    )


def nothing_yet(title: str, why: str, target: str, label: str) -> NoReturn:
    """An empty state: what is missing, why, and one next action. Ends the page."""
    with st.container(border=True):
        st.subheader(title)
        st.write(why)
        st.page_link(page(target), label=label, icon=":material/arrow_forward:")
    st.stop()


def caption(view: View, extra: Iterable[str] = ()) -> None:
    """The one line under the title: data set, systems, metric, queries, date; and which labels are
    in force where some were corrected."""
    data = services.dataset(view.dataset_id)
    names = [markdown_safe(view.name(system), 40) for system in view.challengers]
    compared = markdown_safe(view.name(view.baseline), 40)
    if names:
        compared += " → " + ", ".join(names)
    runs = (view.systems[system].run for system in view.chosen)
    newest = max((run.created for run in runs if run is not None), default="")
    parts = [
        markdown_safe(data.name, 60),
        compared,
        view.title(view.spec),
        # This rule turns the numbers into others.
        *([f"**{_('judged documents only')}**"] if view.conventions.judged_only else []),
        ngettext("{n} query", "{n} queries", len(data.queries)),
        *extra,
        *([moment(newest)] if newest else []),
    ]
    if not view.corrections:
        st.caption(" · ".join(parts))
        return
    parts.append(_corrections(view))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(" · ".join(parts), width="content")
        address.pick_one(
            LABELS,
            [CORRECTED, UPLOADED],
            st.segmented_control,
            default=CORRECTED,
            label=_("Labels in force"),
            label_visibility="collapsed",
            format_func={CORRECTED: _("with corrections"), UPLOADED: _("as uploaded")}.__getitem__,
            required=True,
        )


def _corrections(view: View) -> str:
    if view.corrected:
        return ngettext("**{n} label corrected**", "**{n} labels corrected**", view.corrections)
    return ngettext("{n} correction left out", "{n} corrections left out", view.corrections)


def looked_at(view: View) -> str:
    """The challenger that is looked at closely, chosen where there are several; the baseline where
    there is none."""
    if len(view.challengers) < 2:
        return view.challengers[0] if view.challengers else view.baseline
    chosen = address.pick_one(
        "vs",
        list(view.challengers),
        st.segmented_control,
        label=_("Looked at, against {baseline}", baseline=safe_name(view, view.baseline)),
        format_func=lambda system: safe_name(view, system),
        required=True,
    )
    return chosen or view.challengers[0]


def safe_name(view: View, system_id: str) -> str:
    """The system's name for a place that renders Markdown."""
    return markdown_safe(view.name(system_id), 40)


def segments(view: View) -> list[str]:
    return services.dataset(view.dataset_id).segments
