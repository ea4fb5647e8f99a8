"""Parts of pages shared by all sessions: drawn once as long as their inputs do not change."""

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from rankdash.core.base import i18n
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions
from rankdash.core.study.cache import Key, Made
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, Money, System
from rankdash.features.rank_shifts.study import moves
from rankdash.kit.widgets.cache import cache, shared
from tests.study import parts

MADE = []


@pytest.fixture(autouse=True)
def _nothing_made():
    st.cache_resource.clear()
    MADE.clear()


def part(study: Study, *on: str, wide: bool = False) -> str:
    MADE.append((*on, wide))
    return f"{study.dataset.name}: {', '.join(study.names.values())}"


def made(**changed) -> Study:
    """Return a new object for the same study each time, except for the changed fields."""
    ids = pd.Series(["q1", "q2"])
    dataset = Dataset(
        changed.pop("data", "Shop"),
        pd.DataFrame({"query_id": ids, "text": ids}),
        pd.DataFrame({"doc_id": ["d1"], "title": "", "text": "d"}),
        pd.DataFrame({"query_id": ids, "doc_id": "d1", "label": 1.0}),
        Ranking.from_lists([(each, ["d1"], [1.0]) for each in ids]),
    )
    names = changed.pop("names", ("BM25", "MiniLM"))
    systems = {
        each: System(each, name, place, ranking=dataset.candidates)
        for place, (each, name) in enumerate(zip((FIRST_STAGE, "run"), names, strict=True))
    }
    given = {"baseline": FIRST_STAGE, "challengers": ("run",), "dataset_id": "shop", **changed}
    return Study(dataset=dataset, systems=systems, **given)


def test_a_part_is_made_once_for_what_is_given():
    same = made()
    for study in (same, replace(same), made()):
        assert shared(part, study, "a") == "Shop: BM25, MiniLM"
    shared(part, made(), "b")
    shared(part, made(), "a", wide=True)
    with i18n.speaking("zh"):
        shared(part, made(), "a")
    assert MADE == [("a", False), ("b", False), ("a", True), ("a", False)]


@pytest.mark.parametrize(
    "changed",
    [
        {"data": "Store"},
        {"names": ("BM25", "L12")},
        {"dataset_id": "shop+1"},
        {"baseline": "run", "challengers": (FIRST_STAGE,)},
        {"challengers": ()},
        {"metric": "mrr"},
        {"cutoff": 5},
        {"others": ("map",)},
        {"conventions": Conventions(threshold=2.0)},
        {"statistics": StatisticsSettings(level=0.9)},
        {"money": Money(currency="EUR")},
        {"corrections": 1},
    ],
)
def test_another_study_has_parts_of_its_own(changed):
    shared(part, made())
    shared(part, made(**changed))
    assert len(MADE) == 2


def pages() -> None:
    """Draw a part in two columns, the second time from the cache."""
    import streamlit as st

    from rankdash.kit.widgets.cache import shared
    from tests.ui.state.test_cache import drawn, made

    for column in st.columns(2):
        with column:
            shared(drawn, made())


def drawn(study: Study) -> None:
    MADE.append(())
    st.caption(study.name("run"))
    with st.expander("More"):
        st.text("inside")


def test_what_was_drawn_is_drawn_again_where_it_is_asked_for():
    app = AppTest.from_function(pages, default_timeout=300).run()
    assert not app.exception
    assert len(MADE) == 1
    for column in app.columns:
        assert [each.value for each in column.caption] == ["MiniLM"]
        assert [each.value for each in column.expander[0].text] == ["inside"]


def test_comparing_many_pairs_of_runs_forgets_no_data_set():
    def kept(part: str, of: object) -> object:
        return cache((part, of), object)

    data, labels = kept("dataset", "shop"), kept("label rows", "shop")
    for pair in range(40):
        kept("pairs", pair)
    assert (kept("dataset", "shop"), kept("label rows", "shop")) == (data, labels)


def test_what_is_large_of_a_study_counts_under_its_limit():
    keys = []

    def recorded(key: Key, make: Callable[[], Made]) -> Made:
        keys.append(key)
        return make()

    study = replace(parts.study(), cache=recorded)
    moves(study, study.challengers[0])
    assert [key[0] for key in keys if "rank_shifts" in str(key)] == ["pairs", "pairs"]
    assert {"judged", "run"} < {key[0] for key in keys}
