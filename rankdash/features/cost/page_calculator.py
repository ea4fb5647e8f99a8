"""ROI calculator before any run, and saved scenarios."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from rankdash.core.base.errors import DataError, RankdashError
from rankdash.core.base.i18n import error_text, level_percent, number, percent
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import distinct
from rankdash.core.study.costs import Choice
from rankdash.core.study.study import Study
from rankdash.core.value.assumptions import (
    DOLLARS,
    LONGEST_SCENARIO_NAME,
    MOST_SCENARIOS,
    SCENARIOS,
    Assumptions,
    read_scenarios,
    write_scenarios,
)
from rankdash.core.value.break_even import least_quality
from rankdash.core.value.payoff import (
    ARCHETYPES,
    EXAMPLE_AFTER,
    EXAMPLE_BEFORE,
    EXAMPLE_PRICE,
    Archetype,
    Outcome,
    SimpleRoi,
    cost_per_search,
    simple_roi,
)
from rankdash.core.value.prices import MOST_AMOUNT
from rankdash.core.words.costs import return_words
from rankdash.core.words.latency import milliseconds
from rankdash.core.words.prices import symbol
from rankdash.features.cost import page_currency, page_inputs
from rankdash.features.cost.page_inputs import amount, period
from rankdash.kit.widgets import address, dialogs, narrow, pickers, scenario, sharing_link
from rankdash.kit.widgets.stored import read_only, workspace
from rankdash.kit.widgets.text import markdown_safe, table_html

# Name of the typed price if no system is chosen.
_ANY = "any"


@st.fragment
def before_any_run(study: Study) -> None:
    """Draw the calculator for a data set without runs: the published example as default, and four
    example rerankers."""
    sliders, results = st.container(key=narrow.BELOW).columns([1, 3], gap="medium")
    with sliders:
        page_inputs.basics()
        page_currency.choose_currency(())
    with results:
        before, after = calculator(study, None)
        st.header(_("Four ways to rerank, as examples"))
        _side_by_side(before, after)
    address.publish()
    sharing_link.follow()
    pickers.mark_sent()


def calculator(study: Study, choice: Choice | None) -> tuple[float, float]:
    """Draw the published formula in four steps: without uncertainty, maintenance or traffic share.

    Returns the quality before and after. choice: None before any run.
    """
    measured = (EXAMPLE_BEFORE, EXAMPLE_AFTER)
    if choice is not None:
        measured = (study.mean(study.baseline)[0], study.mean(choice.system)[0])
    left, middle, right = st.columns(3)
    metric = study.title
    before = _quality(
        left, "quality_before", _("{metric} without reranking", metric=metric), measured[0]
    )
    after = _quality(
        middle, "quality_after", _("{metric} with reranking", metric=metric), measured[1]
    )
    assumed = scenario.assumptions()
    cost = _price(right) if choice is None else cost_per_search(choice.option, assumed)
    priced = choice is not None or scenario.amounts("thousand").get(_ANY) is not None
    if (choice is not None and choice.demonstrated) or not (priced and scenario.value_is_set()):
        st.badge(_("Example values"), icon=":material/science:", color="orange")
    if choice is None:
        st.caption(_("Empty fields use the published example. Enter your own numbers."))
    typed = address.one("quality_before") and address.one("quality_after")
    if choice is not None and choice.option.gain is None and not typed:
        # Without a verdict, the two means do not justify a return either.
        text = _("The gain is not known. Enter the quality with and without reranking.")
        st.info(text, icon=":material/info:")
        return before, after
    if choice is not None and choice.lacks_value:
        text = _("Set the price and the value of a search above, or use example values.")
        st.info(text, icon=":material/info:")
        return before, after
    if cost is None:
        st.info(_("This needs a price in the currency of the page."), icon=":material/info:")
        return before, after
    try:
        roi = simple_roi(
            before,
            after,
            searches_per_day=assumed.searches_per_day,
            value_per_search=assumed.value_per_search,
            cost_per_search=cost,
            elasticity=assumed.elasticity,
        )
    except RankdashError as error:
        st.info(markdown_safe(error_text(error), 300), icon=":material/info:")
        return before, after
    heads = _p("column", "step"), _p("column", "formula"), _p("column", "result")
    st.html(table_html(heads, _steps(metric, (before, after), cost, roi)))
    st.caption(
        _(
            "Common calculators use this formula. It ignores how certain the gain is, the share "
            "of the traffic, maintenance, tickets and latency. The answer above includes them."
        )
        if choice is not None
        else _(
            "Common calculators use this formula. It ignores how certain the gain is, the share "
            "of the traffic, maintenance, tickets and latency. A run includes them."
        )
    )
    return before, after


def _quality(column: st.delta_generator.DeltaGenerator, field: str, title: str, usual: float
             ) -> float:  # fmt: skip
    """Draw a number field for a quality and return its value; without one, `usual`."""
    text = address.one(field)
    try:
        typed = None if text is None else float(text)
    except ValueError:
        typed = None
    typed = typed if typed is not None and 0 <= typed <= MOST_AMOUNT else None
    address.lose(field, text if typed is None else None)
    key = f"cost.{field}"

    def changed() -> None:
        value = st.session_state[key]
        address.choose(field, None if value is None else f"{value:.10g}")

    pickers.show(column.number_input, key, typed, changed)(
        title, min_value=0.0, max_value=MOST_AMOUNT, format="%.10g", placeholder=number(usual, 4)
    )
    return usual if typed is None else typed


def _price(column: st.delta_generator.DeltaGenerator) -> float | None:
    """Return the typed cost of a search, or the published example; None if the example has another
    currency and the exchange rate is unknown."""
    typed, usual = scenario.amounts("thousand").get(_ANY), _in_currency(EXAMPLE_PRICE)
    key = f"cost.thousand.{_ANY}.{scenario.currency()}"

    def changed() -> None:
        scenario.choose_amount("thousand", _ANY, st.session_state[key])

    pickers.show(column.number_input, key, typed, changed)(
        _("Price of 1,000 searches ({currency})", currency=symbol(scenario.currency())),
        min_value=0.0,
        max_value=MOST_AMOUNT,
        format="%.10g",
        placeholder=amount(usual),
    )
    price = usual if typed is None else typed
    return None if price is None else price / 1000


def _in_currency(dollars: float) -> float | None:
    """Return US dollars in the currency of the page; None without an exchange rate."""
    if scenario.currency() == DOLLARS:
        return dollars
    rate = scenario.rates().get(DOLLARS)
    return None if rate is None else dollars * rate


def _steps(
    metric: str, quality: tuple[float, float], cost: float, roi: SimpleRoi
) -> list[tuple[str, str, str]]:
    """Return (step, formula, result) for each step."""
    assumed = scenario.assumptions()
    searches, (before, after) = number(assumed.searches_per_day, 0), quality
    return [
        (
            _p("step", "improvement"),
            _("({after} − {before}) / {before} of {metric}", after=number(after, 4),
              before=number(before, 4), metric=metric),
            percent(roi.improvement, 4),
        ),
        (
            _("gain per day"),
            _("{searches} searches × {value} × improvement × {elasticity}", searches=searches,
              value=amount(assumed.value_per_search), elasticity=number(assumed.elasticity, 2)),
            amount(roi.gain_per_day),
        ),
        (
            _("cost per day"),
            _("{searches} searches × {cost}", searches=searches, cost=amount(cost)),
            amount(roi.cost_per_day),
        ),
        (
            _("return on cost"),
            _("(gain − cost) / cost"),
            return_words(roi.gain_per_day - roi.cost_per_day, roi.cost_per_day),
        ),
    ]  # fmt: skip


def _side_by_side(before: float, after: float) -> None:
    """Draw a table of the example rerankers at their example prices, with the quality typed
    above."""
    heads = (
        _("reranking (example)"), _p("column", "quality"), _("p95 added"), _("1,000 searches"),
        _("gain per day"), _("cost per day"), _("return on cost"), _("break-even quality"),
    )  # fmt: skip
    st.html(table_html(heads, [_way(each, before, after) for each in ARCHETYPES]))
    rests_on = [
        _("{part}: {value}", part=_p("reranker", each.title), value=_(each.meaning))
        for each in ARCHETYPES
    ]
    st.caption("  \n".join(rests_on))
    st.caption(
        _(
            "These are examples. Every reranker uses the quality entered above, because only a "
            "run on your data measures the quality of each. Break-even quality: gain equals cost."
        )
    )


def _way(each: Archetype, before: float, after: float) -> tuple[str, ...]:
    assumed, price = scenario.assumptions(), _in_currency(each.per_thousand)
    start = (
        _p("reranker", each.title),
        number(after if each.per_thousand else before, 2),
        milliseconds(each.p95_ms),
    )
    if price is None or not price:
        return (*start, amount(price), *["–"] * 4)
    inputs = {
        "value_per_search": assumed.value_per_search,
        "cost_per_search": price / 1000,
        "elasticity": assumed.elasticity,
    }
    even = least_quality(before, **inputs)
    try:
        roi = simple_roi(before, after, searches_per_day=assumed.searches_per_day, **inputs)
    except RankdashError:
        # The calculator above shows the reason.
        return (*start, amount(price), *["–"] * 4)
    return (
        *start,
        amount(price),
        amount(roi.gain_per_day),
        amount(roi.cost_per_day),
        return_words(roi.gain_per_day - roi.cost_per_day, roi.cost_per_day),
        number(even, 3),
    )


# Named scenarios: stored in the workspace, compared side by side, loaded into the sliders.


def draw_scenarios(study: Study, choice: Choice, scenario: Assumptions) -> None:
    """Draw the present settings (pessimistic, expected, optimistic) and every saved scenario."""
    try:
        saved, unread = _load(), None
    except RankdashError as error:
        saved, unread = {}, error
    compared = _compared(choice, scenario, saved)
    span = period()
    titles = [
        span.cost,
        span.value,
        span.net,
        _("return on cost"),
        _("payback time in months"),
        _p("column", "break-even"),
    ]
    rows = [(name, *_row(outcome)) for name, outcome in compared]
    st.html(table_html((_p("column", "scenario"), *titles), rows))
    if len(compared) > 1 + len(saved):
        _meanings(study)
    if unread is not None:
        _say_unread(unread)
    elif not read_only():
        _offer_to_save(saved, scenario)
    if saved:
        _offer_saved(saved)


def _meanings(study: Study) -> None:
    """Draw a caption that explains the rows Pessimistic and Optimistic."""
    st.caption(
        _(
            "Pessimistic and optimistic use the same sliders, with the gain at the lower and "
            "upper end of its {level} interval.",
            level=level_percent(study.statistics.level),
        )
    )


def _offer_to_save(saved: dict[str, Assumptions], scenario: Assumptions) -> None:
    with st.form("cost.scenarios.save", border=False, clear_on_submit=True):
        columns = st.columns([3, 1], vertical_alignment="bottom")
        name = columns[0].text_input(
            _("Save these assumptions as"),
            max_chars=LONGEST_SCENARIO_NAME,
            placeholder=_("scenario name"),
        )
        if columns[1].form_submit_button(
            _p("button", "Save"), icon=":material/save:", width="stretch"
        ):
            _save(saved, name.strip(), scenario)


def _offer_saved(saved: dict[str, Assumptions]) -> None:
    columns = st.columns([3, 1, 1], vertical_alignment="bottom")
    picked = columns[0].selectbox(
        _("Saved scenario"),
        list(saved),
        format_func=distinct({name: name for name in saved}).__getitem__,
        key="cost.scenarios.pick",
    )
    columns[1].button(
        _("Use it"),
        icon=":material/tune:",
        width="stretch",
        on_click=page_inputs.take_over,
        args=(saved[picked],),
    )
    if not read_only() and columns[2].button(
        _p("button", "Delete"), icon=":material/delete:", width="stretch"
    ):
        dialogs.delete(
            _("Delete the scenario?"),
            [_("{names} will be deleted permanently.", names=markdown_safe(picked, 80))],
            lambda: _keep({name: each for name, each in _load().items() if name != picked}),
        )


def _compared(
    choice: Choice, scenario: Assumptions, saved: Mapping[str, Assumptions]
) -> list[tuple[str, Outcome]]:
    rows = [(_("current settings (expected)"), choice.outcome)]
    gain = choice.option.gain
    low, high = (None, None) if gain is None else (gain.at("low"), gain.at("high"))
    if low is not None and high is not None:
        worst, best = (choice.under(scenario, each, valued=choice.valued) for each in (low, high))
        rows = [(_p("scenario", "pessimistic"), worst), *rows, (_p("scenario", "optimistic"), best)]
    for name, each in saved.items():
        rows.append((name, choice.under(each, gain, valued=True)))
    return rows


def _row(outcome: Outcome) -> list[str]:
    span = period()
    cells = [
        page_inputs.cell(span.of(outcome.cost_per_month)),
        page_inputs.cell(span.of(outcome.value_per_month)),
        page_inputs.cell(span.of(outcome.net_per_month)),
        page_inputs.cell(outcome.roi, "percent"),
        ("", "")
        if outcome.payback_months.reason == "no_setup"
        else page_inputs.cell(outcome.payback_months, "months"),
        page_inputs.cell(outcome.break_even_elasticity, "elasticity"),
    ]
    return [
        _("{fact} ({of})", fact=value, of=interval) if interval else value
        for value, interval in cells
    ]


def _load() -> dict[str, Assumptions]:
    """Return the saved scenarios. Raises DataError if they cannot be read."""
    text = workspace().setting(SCENARIOS)
    return read_scenarios(text) if text else {}


def _say_unread(error: RankdashError) -> None:
    """Show that the saved scenarios cannot be read, and offer to delete them."""
    st.warning(markdown_safe(error_text(error), 300), icon=":material/warning:")
    if not read_only() and st.button(
        _("Delete the saved scenarios"), icon=":material/delete:", key="cost.scenarios.unread"
    ):
        dialogs.delete(
            _("Delete the saved scenarios?"),
            [_("The saved scenarios cannot be read. They will be deleted permanently.")],
            lambda: workspace().set_setting(SCENARIOS, ""),
        )


def _save(saved: dict[str, Assumptions], name: str, scenario: Assumptions) -> None:
    try:
        if not name:
            raise DataError("A scenario needs a name.")
        if name not in saved and len(saved) >= MOST_SCENARIOS:
            raise DataError(
                "{most} scenarios are saved already.",
                remedy="Delete one of them first.",
                most=number(MOST_SCENARIOS, 0),
            )
        _keep(saved | {name: scenario})
    except RankdashError as error:
        dialogs.show_error(error_text(error))
    else:
        st.rerun()


def _keep(scenarios: Mapping[str, Assumptions]) -> None:
    workspace().set_setting(SCENARIOS, write_scenarios(scenarios))
