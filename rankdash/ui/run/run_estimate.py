"""What a run would ask of a service, said before it starts: calls, tokens, dollars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from urllib.parse import urlsplit

import streamlit as st

from rankdash.errors import RankdashError
from rankdash.i18n import gettext as _
from rankdash.rerankers import Request, RerankerKind
from rankdash.rerankers.remote.estimates import Estimate
from rankdash.runs.plan import sample_queries
from rankdash.ui.runs import cost_line
from rankdash.ui.state import stored
from rankdash.ui.state.cache import cache

# So many queries tell what the others cost.
_LOOKED_AT = 40
_SEED = 7

Settings = Mapping[str, str | int | float | bool]


def say(
    dataset_id: str, kind: RerankerKind, runs: Sequence[tuple[Settings, int | None]], queries: int
) -> None:
    """One line for a kind that calls a service; nothing for the others, or for wrong settings.

    runs: settings and depth of each run of that kind.
    """
    if kind.estimate is None or kind.key is None:
        return
    try:
        places = [kind.key(settings) for settings, _depth in runs]
        if not places or places[0] is None:
            return
        host = urlsplit(places[0].base_url).netloc
        each = [
            cache(
                ("estimate", dataset_id, kind.name, tuple(settings.items()), depth, queries),
                partial(_estimate, dataset_id, kind, settings, depth, queries),
            )
            for settings, depth in runs
        ]
    except RankdashError:
        # The form says what is wrong with them.
        return
    found = sum(each, Estimate(0, 0.0, 0.0, 0.0))
    st.caption(" · ".join([_(kind.title), *cost_line.parts(found, host)]))


def _estimate(
    dataset_id: str, kind: RerankerKind, settings: Settings, depth: int | None, queries: int
) -> Estimate:
    data = stored.dataset(dataset_id)
    sampled = sample_queries(data, min(_LOOKED_AT, max(queries, 1)), _SEED)
    texts, asked = data.document_text(), data.query_text()
    requests = []
    for query in sampled:
        docs = data.candidates.documents_of(query)[0][:depth]
        requests.append(Request(query, asked[query], docs, list(texts.loc[docs])))
    if kind.estimate is None or not requests:
        return Estimate(0, 0.0)
    return kind.estimate(dict(settings), requests).scaled(queries / len(requests))
