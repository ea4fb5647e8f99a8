"""Run: which known models fit the data, by facts, and their choice for the form."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import enumerated, ngettext, number, percent, separated
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.data.ranking import SHIPPED_WITH
from rankdash.core.rerankers import RerankerKind, defaults
from rankdash.core.rerankers.defaults import FITTING, Candidate, Limits
from rankdash.core.rerankers.kinds.endpoint import DIALECTS
from rankdash.core.words.queries import language_name, languages, licence_of
from rankdash.kit.widgets import run_records, settings_form, stored
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.stored import workspace

_SIZES = (50, 150, 350, 600, 1_500)
_HEIGHT = 420

Share = Callable[[str], float]


def draw(
    dataset_id: str,
    offered: Mapping[str, RerankerKind],
    preselected: defaults.Preselection,
    share: Share,
    rerankers_key: str,
) -> None:
    """Draw the known models with the reason why each is preselected or not. rerankers_key: the
    session key of the chosen rerankers."""
    names = [_short(model) for model in preselected.models.values()]
    title = (
        _("Which one? Preselected: {names}", names=enumerated(names))
        if names
        else _("Which one? No packaged model reads these texts")
    )
    fold(
        title,
        "run.which",
        ":material/checklist:",
        partial(_table, dataset_id, offered, share, rerankers_key),
    )


def _table(
    dataset_id: str, offered: Mapping[str, RerankerKind], share: Share, rerankers_key: str
) -> None:
    data = stored.dataset(dataset_id)
    st.caption(
        _(
            "Known models by facts; their scores on other data are not used. Your texts are in "
            "{language}. Measure the models that fit on a sample of your queries.",
            language=language_name(data.language),
        )
    )
    found = defaults.candidates(
        data, share, _limits(), _measured(), partial(_has_key, offered["endpoint"])
    )
    st.dataframe(
        pd.DataFrame([_row(each, offered, data.language) for each in found]),
        hide_index=True,
        height=_HEIGHT,
        placeholder="–",
        key="run.which.table",
        column_config={
            _p("column", "Model"): st.column_config.TextColumn(width=230),
            _p("column", "Tokens"): st.column_config.NumberColumn(format="localized"),
            _("$ per 1,000 searches"): st.column_config.NumberColumn(format="%.2f"),
        },
    )
    chosen = [each for each in found if not each.obstacle]
    if not chosen:
        st.info(_("No model on this machine fits these limits."), icon=":material/info:")
        return
    st.button(
        ngettext("Select {n} model", "Select {n} models", len(chosen)),
        icon=":material/check:",
        key="run.which.choose",
        help=_("Sets the form below. Its other settings stay."),
        on_click=_choose,
        args=(chosen, offered, data.language, share, rerankers_key),
    )


def _choose(
    chosen: Sequence[Candidate],
    offered: Mapping[str, RerankerKind],
    language: str,
    share: Share,
    rerankers_key: str,
) -> None:
    st.session_state[rerankers_key] = [kind for kind in offered if kind in {x.kind for x in chosen}]
    for each in chosen:
        settings_form.choose_model(offered[each.kind], language, share, {"model": each.model.id})


def _limits() -> Limits:
    """Draw the limits, and return them."""
    columns = st.columns(5, vertical_alignment="bottom")
    commercial = columns[0].checkbox(
        _("Commercial use"),
        key="run.which.commercial",
        help=_("Excludes licences that forbid it. Read the licence before you rely on it."),
    )
    whole = columns[1].checkbox(
        _("Whole documents"),
        key="run.which.whole",
        help=_("Excludes models that truncate more than 5% of the documents."),
    )
    size = columns[2].selectbox(
        _("Max. parameters"),
        (None, *_SIZES),
        format_func=lambda n: _p("choice", "any") if n is None else _("{n} M", n=number(n, 0)),
        key="run.which.size",
    )
    rate = columns[3].number_input(
        _("Min. pairs per second"),
        min_value=0.0,
        value=None,
        placeholder=_p("choice", "any"),
        key="run.which.rate",
        help=_("As measured on this machine in a run of the same reranker and model."),
    )
    price = columns[4].number_input(
        _("Max. $ per 1,000 searches"),
        min_value=0.0,
        value=None,
        placeholder=_p("choice", "any"),
        key="run.which.price",
        help=_("For services: the dated list price, at the lengths of your texts."),
    )
    return Limits(commercial, whole, None if size is None else size * 1e6, rate, price)


def _row(each: Candidate, offered: Mapping[str, RerankerKind], language: str) -> dict[str, Any]:
    model = each.model
    service = DIALECTS.get(model.service)
    host = model.service if service is None else service.title
    return {
        _p("column", "Model"): f"{host}: {model.id}" if model.service else model.id,
        _p("column", "Fit"): reason(each, language),
        _p("column", "Reranker"): _p("reranker", offered[each.kind].title),
        _p("column", "Languages"): languages(model.languages),
        _p("column", "Tokens"): model.max_length or math.nan,
        _p("column", "Parameters"): _("{n} M", n=number(model.size / 1e6, 0)) if model.size else "",
        _p("column", "Licence"): licence_of(model),
        _("Pairs/s here"): each.pairs_per_second or math.nan,
        _("$ per 1,000 searches"): math.nan if each.per_thousand is None else each.per_thousand,
        _p("column", "Released"): model.released,
        _p("column", "Source"): model.source,
        _("Seen on"): model.seen_on,
    }


def reason(each: Candidate, language: str) -> str:
    """Return why a model is preselected or not, and how many documents it would truncate."""
    model = each.model
    service = DIALECTS.get(model.service)
    host = model.service if service is None else service.title
    text = {
        "": _p("model", "preselected"),
        "language": _(
            "reads {languages} only; your texts are in {language}",
            languages=languages(model.languages),
            language=language_name(language),
        ),
        "tokens": _("does not know more than 10% of the tokens of your texts"),
        "licence": _("its licence forbids commercial use"),
        "size": _("larger than the limit, or of unpublished size"),
        "length": _("truncates more than 5% of your documents, or its limit is unknown"),
        "slow": _("slower than the limit on this machine"),
        "unmeasured": _("not measured on this machine yet"),
        "price": _("more expensive than the limit"),
        "unpriced": _("its price is unknown"),
        "modules": _(
            "not a sequence classifier, so rankdash cannot load it; use a server of yours"
        ),
        "code": _("needs code from its page, which rankdash does not run; use its service"),
        "extra": _("its package, or the extra “models”, is not installed"),
        "service": _("rankdash does not support the service {service}", service=host),
        "key": _("no key of {service} on this server; enter one in its form", service=host),
        "download": _("fits; not preselected: needs a download"),
        "sends": _("fits; not preselected: sends your texts to {service}", service=host),
        "other": _("fits; not preselected: {other} is the default", other=_short(each.preselected)),
    }[each.obstacle]
    remarks = [text]
    if each.obstacle in FITTING and each.truncated > 0:
        share = percent(each.truncated)
        remarks.append(_("truncates about {share} of your documents", share=share))
    if model.successor:
        newer = _("its provider recommends {model}", model=_short(model.successor))
        return separated([*remarks, newer])
    if model.status == "deprecated":
        return separated([*remarks, _("deprecated by its provider")])
    return separated(remarks)


def _short(model: str) -> str:
    return model.rpartition("/")[2]


def _measured() -> Callable[[str, str], float | None]:
    """Return the function from kind and model to the pairs per second of the longest run on this
    machine, of those without windows, which are slower."""
    rates: dict[tuple[str, str], tuple[int, float]] = {}
    for row in workspace().runs():
        windows = row.settings.get("window")
        shipped = SHIPPED_WITH in run_records.record(row.id).machine
        if row.pairs_per_second and not windows and not shipped:
            name = row.reranker, str(row.settings.get("model", ""))
            rates[name] = max(
                rates.get(name, (0, 0.0)), (row.queries_done, float(row.pairs_per_second))
            )
    return lambda kind, model: rates[kind, model][1] if (kind, model) in rates else None


def _has_key(kind: RerankerKind, service: str) -> bool:
    """Return whether the server's environment has the key of a service."""
    if kind.key is None or service not in DIALECTS:
        return False
    usual = {spec.name: spec.default for spec in kind.settings}
    try:
        place = kind.key({**usual, "dialect": service})
    except RankdashError:
        return False
    return place is not None and place.in_environment
