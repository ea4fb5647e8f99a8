"""Growth of the cost of each page with the number of queries.

The cost is the number of function calls, in Python and C (a SQL statement is one), plus the number
of comparisons of ids in NumPy; not time. The queries are doubled twice. The second doubling may add
at most three times as many calls as the first: a linear cost adds twice as many, a quadratic cost
four times as many.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from rankdash.core.base.shipped import INTERFACE
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.kit.widgets import stored
from tests.benchmarks.large_set import store

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))
SIZES = (200, 400, 800)
# The possible difference between two runs of the same page, in calls.
SLACK = 20_000
# Parts of pages that are computed only when they are open.
OPEN = ("judge.another", *(f"overview.{name}" for name in ("table", "unjudged")))


class Cost:
    """The number of calls, also by pages in separate threads."""

    count = 0

    def __call__(self, _frame: object, event: str, _argument: object) -> None:
        self.count += event in ("call", "c_call")


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cost]:
    cost, isin = Cost(), np.isin

    def compared(elements, among, **options):
        if np.asarray(elements).dtype == object:
            cost.count += np.size(elements) * np.size(among)
        return isin(elements, among, **options)

    with monkeypatch.context() as patch:
        patch.setattr(np, "isin", compared)
        threading.setprofile(cost)
        try:
            yield cost
        finally:
            threading.setprofile(None)


@pytest.fixture(scope="module")
def homes(tmp_path_factory) -> Iterator[dict[int, tuple[Path, str]]]:
    """Yield number of queries → a workspace with such a set, two runs and a judge, and the set's
    id."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        for size in SIZES:
            home = tmp_path_factory.mktemp("home")
            patch.setenv("RANKDASH_HOME", str(home))
            stored.workspace.cache_clear()
            dataset_id = store(
                {"a": 0.8, "b": 1.2}, queries=size, candidates=5, documents=size, words=8
            )
            qrels = stored.workspace().dataset(dataset_id).qrels
            grades = qrels.assign(grade=qrels["label"], error="").drop(columns="label")
            StoredJudges(stored.workspace()).add(dataset_id, "judge", "tiny", 3, grades)
            found[size] = home, dataset_id
    stored.workspace.cache_clear()
    yield found
    stored.workspace.cache_clear()


@pytest.mark.thorough
@pytest.mark.parametrize("page", PAGES)
def test_doubling_the_queries_at_most_triples_what_they_add(
    page, homes, monkeypatch, quick_starts
) -> None:
    costs = []
    for size in (SIZES[0], *SIZES):
        home, dataset_id = homes[size]
        monkeypatch.setenv("RANKDASH_HOME", str(home))
        stored.workspace.cache_clear()
        st.cache_resource.clear()
        app = AppTest.from_file(str(INTERFACE), default_timeout=300)
        app.query_params["data"] = dataset_id
        for name in OPEN:
            app.session_state[name] = True
        if page != "overview":
            app.switch_page(str(ROOT / "pages" / f"{page}.py"))
        with counted(monkeypatch) as cost:
            app.run()
        assert not app.exception
        assert app.title
        costs.append(cost.count)
    # The first run also imports modules.
    _imports, one, two, four = costs
    assert four - two <= 3 * max(two - one, 0) + SLACK, costs
