"""Form for a new judge: an LLM to call, or a file of grades."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

import streamlit as st

from rankdash.core.base.errors import DataError, RankdashError
from rankdash.core.base.i18n import duration, error_text, ngettext, number, plain, reason_text
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.rules import SettingValue
from rankdash.core.data.judgements import Judgements
from rankdash.core.intake.reading import tried
from rankdash.core.readers.loading import judgements_in
from rankdash.core.rerankers.remote.connection import Estimate, given_keys
from rankdash.core.runs.scoring import OptionalCache
from rankdash.core.sampling.bias_corrected import FEWEST_PEOPLE
from rankdash.core.sampling.label_plan import LabelPool, pool_of
from rankdash.core.study.leaderboard import best_challenger
from rankdash.core.study.study import Study
from rankdash.core.workspace.jobs.judges import LONGEST_JUDGE_NAME, StoredJudges
from rankdash.core.workspace.notes import Corrections, LabelPlans
from rankdash.features.judge import page_list
from rankdash.features.judge.asking import (
    JudgeRequest,
    Pair,
    Trial,
    estimate,
    pairs_of,
    questions,
    seconds_of,
    submit,
    trial,
)
from rankdash.features.judge.judge import (
    KINDS,
    MOST_TOKENS,
    OWN,
    USUAL_TOKENS,
    Judge,
    JudgeKind,
)
from rankdash.kit.html.interval import parts_html
from rankdash.kit.widgets import dialogs, pickers, scenario, settings_form, stored, view
from rankdash.kit.widgets.cache import cache
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.stored import worker, workspace
from rankdash.kit.widgets.text import markdown_safe, shortened
from rankdash.kit.widgets.uploader import uploader

_SEED = 7
_DEPTH, _DEEPEST = 10, 100
_LONGEST_REASON = 300
_KEY = "judge"
# Session: the judge of the last test call, and the result.
_TRIED = "judge.tried"

Settings = Mapping[str, SettingValue]


def draw_answer(study: Study) -> None:
    """Draw the purpose of a judge, and how human labels show its reliability."""
    lead = _("**No LLM judge has graded documents of this data set yet.**")
    if enough := (n := study.dataset.labelled_queries) >= FEWEST_PEOPLE:
        trust = ngettext(
            "Human labels of {n} query will show how far to trust it.",
            "Human labels of {n} queries will show how far to trust it.",
            n,
        )
    else:
        trust = _(
            "Label documents of at least {n} queries first, so that the judge can be corrected.",
            n=number(FEWEST_PEOPLE, 0),
        )
    st.markdown(f"{lead} {trust}")
    if not enough:
        view.link("label", _("Label documents"), ":material/label:")
    st.caption(
        _(
            "A judge's grades are never used as labels. If labels are missing, grades reduce how "
            "many human labels are needed."
        )
    )


def draw(study: Study) -> None:
    """Draw the form. Default systems: baseline and best challenger, or all without labels."""
    dataset_id, compared = study.stored_id, study.chosen
    if study.dataset.labelled_queries and (leader := best_challenger(study)) is not None:
        compared = (study.baseline, leader)
    settings_form.clear({row.id for row in stored.judge_rows(dataset_id).values() if row.live})
    if not stored.dataset(dataset_id).has_texts:
        st.info(
            _("A judge needs texts, and this data set has none."),
            icon=":material/block:",
        )
        return
    effort = st.container()
    systems, depth, sample = _pool_choice(dataset_id, compared)
    kind = _kind(dataset_id)
    settings = {**kind.fixed, **settings_form.draw(kind, "latin")}
    name = st.text_input(
        _("Name of the judge"),
        max_chars=LONGEST_JUDGE_NAME,
        placeholder=_("Default: name of the model"),
        key="judge.name",
        persist_state="session",
    )
    entry = settings_form.draw_key_field(kind, settings, _KEY)
    settings |= entry.settings
    if not systems:
        st.info(_("Choose at least one system."), icon=":material/info:")
        return
    try:
        pool = _pool(dataset_id, systems, depth)
        pairs = pairs_of(pool, sample, _SEED, _labelled(dataset_id))
        judge = Judge(settings)
        with effort:
            _draw_effort(study, judge, pairs)
    except RankdashError as error:
        effort.error(markdown_safe(error_text(error), 500), icon=":material/error:")
        return
    if pool.excluded:
        st.caption(
            ngettext(
                "{n} query is not in every ranking and is excluded.",
                "{n} queries are not in every ranking and are excluded.",
                len(pool.excluded),
            )
        )
    with effort.container(horizontal=True, vertical_alignment="center"):
        pressed = st.button(
            _("Start the judge"),
            type="primary",
            icon=":material/play_arrow:",
            key="judge.start",
            disabled=bool(entry.missing),
        )
        tested = st.button(
            _("Test call"),
            icon=":material/experiment:",
            key="judge.test",
            disabled=bool(entry.missing),
            help=_(
                "Sends one document to the judge and measures the time of its answer. The answer "
                "is cached, so that the judge does not repeat this call."
            ),
        )
        if entry.missing:
            st.caption(entry.missing)
    with effort:
        _draw_test(judge)
    if tested:
        _test(dataset_id, judge, pairs, entry.keys)
    if not pressed:
        return
    names = stored.systems(dataset_id)
    wish = JudgeRequest(
        dataset_id, settings, [names[each].name for each in systems], depth, pairs, name
    )
    judge_id = uuid.uuid4().hex[:16]
    try:
        if entry.keys:
            worker().hand_over(judge_id, entry.keys)
            settings_form.lend(_KEY, judge_id)
        submit(workspace(), wish, judge_id)
        worker().ensure()
    except RankdashError as error:
        dialogs.show_error(error_text(error))
        return
    page_list.show(judge_id)
    st.rerun()


def _test(dataset_id: str, judge: Judge, pairs: Sequence[Pair], keys: Mapping[str, str]) -> None:
    """Make one call to a judge, and draw the page again with its result."""
    requested = questions(stored.dataset(dataset_id), pairs)
    with st.spinner(_("Waiting for the judge")), given_keys(keys):
        try:
            result = trial(judge, requested, OptionalCache(workspace()))
        except RankdashError as error:
            dialogs.show_error(error_text(error))
            return
    if result is None:
        dialogs.show_error(_("All answers are in the score cache, so a call is not needed."))
        return
    st.session_state[_TRIED] = _identity(judge), result
    st.rerun()


def _identity(judge: Judge) -> tuple[str, str]:
    return judge.fingerprint(), judge.place.base_url


def _tried(judge: Judge) -> Trial | None:
    """Return the result of the last test call, if it was made to this judge."""
    last, result = st.session_state.get(_TRIED, (None, None))
    return result if last == _identity(judge) else None


def _draw_test(judge: Judge) -> None:
    if (result := _tried(judge)) is None:
        return
    if result.answer.graded:
        grade = _("Test call: grade {grade} in {time}.", grade=plain(result.answer.grade),
                  time=duration(result.seconds))  # fmt: skip
        st.caption(f"{grade} {markdown_safe(result.answer.reason, _LONGEST_REASON)}")
    else:
        reason = reason_text(result.answer.error).rstrip(".")
        st.warning(
            _("Test call: no grade ({reason}).", reason=markdown_safe(reason, _LONGEST_REASON)),
            icon=":material/warning:",
        )


def _pool_choice(
    dataset_id: str, compared: Sequence[str]
) -> tuple[tuple[str, ...], int, int | None]:
    """Draw the choice of systems, depth and number of queries (None for all)."""
    names = {
        each: shortened(system.name, 60) for each, system in stored.systems(dataset_id).items()
    }
    queries = len(stored.dataset(dataset_id).queries)
    chosen = st.multiselect(
        _("Systems to judge"),
        list(names),
        default=[each for each in names if each in compared],
        format_func=names.__getitem__,
        key=f"judge.systems.{dataset_id}",
    )
    left, right = st.columns(2)
    depth = left.number_input(
        _("Documents per system and query"),
        1,
        _DEEPEST,
        _DEPTH,
        key="judge.depth",
        persist_state="session",
        help=_("The first k documents of each ranking, as on the page Label."),
    )
    sample = right.slider(
        _p("field", "Queries"),
        1,
        max(queries, 2),
        queries,
        key=f"judge.sample.{dataset_id}",
        persist_state="session",
        help=_(
            "Fewer queries cost less. Queries with human labels come first, then a random sample "
            "of the others (fixed seed {seed}), each with all its documents.",
            seed=_SEED,
        ),
    )
    return tuple(chosen), int(depth), sample if sample < queries else None


def _kind(dataset_id: str) -> JudgeKind:
    """Draw the choice of a prompt; return the kind of judge with this prompt. The newest labelling
    plan sets the default guidelines."""
    titles = {
        "graded": _("graded, 0 to 3 (UMBRELA style)"),
        "binary": _("relevant or not"),
        OWN: _("custom prompt"),
    }
    chosen = st.selectbox(
        _p("field", "Prompt"),
        list(KINDS),
        format_func=titles.__getitem__,
        key=pickers.in_words("judge.prompt"),
        persist_state="session",
    )
    kind = KINDS[chosen]
    if prompt := kind.fixed.get("prompt"):
        with st.expander(_("Judge prompt"), key=f"judge.told.{chosen}"):
            st.code(str(prompt), language=None, wrap_lines=True)
    plan = LabelPlans(workspace()).newest(dataset_id)
    if plan is None or not plan.guidelines:
        return kind
    specs = tuple(
        replace(spec, default=plan.guidelines) if spec.name == "guidelines" else spec
        for spec in kind.settings
    )
    return replace(kind, name=f"{kind.name}.{plan.id}", settings=specs)


def _pool(dataset_id: str, systems: tuple[str, ...], depth: int) -> LabelPool:
    def pool() -> LabelPool:
        return pool_of(stored.rankings(dataset_id, systems), depth, fewest=1)

    return cache(("judge pool", dataset_id, systems, depth), pool)


def _labelled(dataset_id: str) -> list[str]:
    """Return the ids of queries with human labels, from the data or added in rankdash."""
    revision = Corrections(workspace()).revision(dataset_id)
    data = stored.dataset(stored.with_corrections(dataset_id, revision) if revision else dataset_id)
    query_ids: list[str] = data.labels["query_id"].texts.to_pylist()
    return query_ids


def _draw_effort(study: Study, judge: Judge, pairs: list[Pair]) -> None:
    """Draw the estimated number of grades, time and cost."""
    dataset_id = study.stored_id
    # Everything that changes the number or length of texts; not connection settings.
    key = (judge.fingerprint(), judge.repeats, judge.settings["price_in"], len(pairs))
    graded = sum(row.graded for row in stored.judge_rows(dataset_id).values())
    cached = (OptionalCache(workspace()).pairs, graded)
    more = (judge.settings["price_out"], hash(tuple(pairs)), *cached)
    before, answered = cache(
        ("judge estimate", dataset_id, *key, *more), partial(_estimate, dataset_id, judge, pairs)
    )
    *traffic, price = scenario.parts(before, urlsplit(judge.place.base_url).netloc)
    # Answers with the usual number of tokens, or with the highest one.
    most = before.tokens_out * MOST_TOKENS / USUAL_TOKENS
    if before.tokens_out:
        traffic.append(_("at most {n} output tokens", n=scenario.rounded(most)))
    if math.isfinite(before.dollars) and before.tokens_out:
        more_dollars = (most - before.tokens_out) * judge.settings["price_out"] / 1e6
        ends = before.dollars, before.dollars + more_dollars
        price = _range(*map(scenario.dollars, ends))
    time = _time(dataset_id, judge, before.calls)
    grades = ngettext("{n} grade", "{n} grades", len(pairs))
    if answered:
        traffic.append(
            ngettext(
                "{n} of them in the score cache",
                "{n} of them in the score cache",
                answered,
            )
        )
    st.markdown(" · ".join([f"**{grades}**", time, price, *traffic]))
    labelled = set(_labelled(dataset_id))
    checked = sum(query in labelled for query, _doc in pairs)
    rest = len(pairs) - checked
    parts = [
        (
            checked,
            _("{n} in queries with human labels, which correct the judge", n=number(checked, 0)),
        ),
        (0, ""),
        (rest, _("{n} in other queries", n=number(rest, 0))),
    ]
    if checked and rest:
        st.html(parts_html(parts, grades))
    elif checked and study.labelling is None:
        st.markdown(
            ngettext(
                "**The {n} query has human labels**: you do not need a judge here; it can only "
                "be checked against them.",
                "**All {n} queries have human labels**: you do not need a judge here; it can only "
                "be checked against them.",
                len({query for query, _doc in pairs}),
            )
        )


def _time(dataset_id: str, judge: Judge, calls: int) -> str:
    """Return the time of a number of calls: at the rate of an earlier judge or the set limit; else
    from the test call, if the service answers all concurrent calls as fast, or one at a time."""
    seconds = seconds_of(judge, calls, _rate(dataset_id, judge))
    if math.isfinite(seconds):
        return _("about {time}", time=duration(seconds))
    if (result := _tried(judge)) is None or result.seconds <= 0:
        return _("time unknown: make a test call")
    rates = judge.concurrency / result.seconds, 1 / result.seconds
    return _range(*(duration(seconds_of(judge, calls, rate)) for rate in rates))


def _range(low: str, high: str) -> str:
    return low if low == high else _("{low} to {high}", low=low, high=high)


def _estimate(dataset_id: str, judge: Judge, pairs: list[Pair]) -> tuple[Estimate, int]:
    requested = questions(stored.dataset(dataset_id), pairs)
    return estimate(judge, requested, OptionalCache(workspace()))


def _rate(dataset_id: str, judge: Judge) -> float | None:
    """Return calls per second of the last judge with this model and address; None if unknown."""
    same = [
        row.calls_per_second
        for row in stored.judge_rows(dataset_id).values()
        if row.model == judge.model
        and row.settings.get("base_url") == judge.settings["base_url"]
        and row.calls_per_second is not None
    ]
    return same[-1] if same else None


# Import of grades from another judge.

_HIGHEST = 100
_SAID, _GENERATION = "judge.file.said", "judge.file.generation"


def draw_file(dataset_id: str) -> None:
    if ignored := st.session_state.pop(_SAID, 0):
        st.info(
            ngettext(
                "{n} row matches no query and document of this data set.",
                "{n} rows match no query and document of this data set.",
                ignored,
            ),
            icon=":material/info:",
        )
    fold(
        _("Import a judge's grades from a file"),
        "judge.file",
        ":material/upload_file:",
        lambda: _upload(dataset_id),
    )


def _upload(dataset_id: str) -> None:
    files = uploader(
        _("CSV or JSON lines with query_id, doc_id and grade"),
        f"judge.file.{st.session_state.get(_GENERATION, 0)}",
        type=["csv", "tsv", "jsonl", "json"],
    )
    if not files:
        return
    [source] = files
    try:
        tried([source])
        judge, _noticed = judgements_in(source)
        matching, top = _matching(dataset_id, judge), _top(judge)
        judge_id = StoredJudges(workspace()).add(
            dataset_id, judge.name, judge.model, top, matching.table
        )
    except RankdashError as error:
        st.error(markdown_safe(error_text(error), 500), icon=":material/error:")
        return
    st.session_state[_SAID] = len(judge) - len(matching)
    st.session_state[_GENERATION] = st.session_state.get(_GENERATION, 0) + 1
    page_list.show(judge_id)
    st.rerun()


def _matching(dataset_id: str, judge: Judgements) -> Judgements:
    """Return the grades that match pairs of the data set. Raises DataError if none match."""
    data, rows = stored.dataset(dataset_id), judge.table
    matching = rows["query_id"].isin(data.queries["query_id"]) & rows["doc_id"].isin(
        data.documents["doc_id"]
    )
    if not matching.any():
        raise DataError(
            "None of the {count} grades match a query and document of this data set.",
            remedy="Check that the query and document ids match those in the data set.",
            count=len(rows),
        )
    return Judgements(judge.name, judge.scale, rows[matching].reset_index(drop=True), judge.model)


def _top(judge: Judgements) -> int:
    low, top = judge.scale
    if low or top % 1 or top > _HIGHEST:
        raise DataError(
            "A judge's scale must go from 0 to a whole number of at most {most}.",
            remedy="Use grades on this scale, with the highest possible grade in a column named "
            "top.",
            most=_HIGHEST,
        )
    return int(top)
