"""Links and reloads reproduce the page: each choice that changes it is in the address."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from rankdash.core.workspace import Workspace
from tests.stored import keep_lists, keep_rows
from tests.ui.sessions import whole

ROOT = Path(__file__).parents[2]
QUERIES = 24
FOLDS = (
    *("sidebar.settings", "overview.table"),
    *("overview.unjudged", "overview.targets", "overview.definitions"),
)
# Containers for layout only.
FRAMES = ("main", "sidebar", "flex_container", "column", "expander", "empty", "grid_container")


def lists(best: int, worst: int) -> Iterator[tuple[str, list[str], list[float]]]:
    """Yield four documents per query, the two relevant ones at the ranks `best` and `worst`, from
    0."""
    for q in range(QUERIES):
        relevant = {best: f"d{q % 4}", worst: f"d{(q + 1) % 4}"}
        others = (f"d{d}" for d in range(4) if f"d{d}" not in relevant.values())
        order = [relevant[rank] if rank in relevant else next(others) for rank in range(4)]
        yield f"q{q}", order, [4.0, 3.0, 2.0, 1.0]


@pytest.fixture
def shop(workspace: Workspace) -> dict[str, str]:
    """Return the address of a data set with three runs: "top" is best by NDCG@10, "both" by
    NDCG@3."""
    rows = "query_id,query,doc_id,document,label,score,kind\n" + "".join(
        f"q{q},how to return {q},d{d},document {d},{int((d - q) % 4 < 2)},{4 - d},{'ab'[q > 11]}\n"
        for q in range(QUERIES)
        for d in range(4)
    )
    dataset_id = keep_rows(workspace, rows, "Shop")
    for name, ranks in {"top": (0, 3), "both": (1, 2), "low": (2, 3)}.items():
        keep_lists(workspace, dataset_id, lists(*ranks), name)
    return {"data": dataset_id, "lang": "en"}


def opened(page: str, address: dict[str, Any]) -> AppTest:
    return whole(page, dict.fromkeys(FOLDS, True), **address)


def seen(app: AppTest) -> list[str]:
    """Return the drawn elements in order."""
    return [
        f"{each.type} {getattr(each, 'label', '')} {_value(each)}"
        for part in (app.main, app.sidebar)
        for each in part
        # A script brings the query of a link into view.
        if each.type not in FRAMES and not str(getattr(each, "value", "")).startswith("<script>")
    ]


def _value(element: Any) -> str:
    if element.type == "plotly_chart":
        return str(element.proto.spec)
    return str(getattr(element, "value", ""))


def address_of(app: AppTest) -> dict[str, Any]:
    return {name: app.query_params[name] for name in app.query_params}


def another(widget: Any) -> Any:
    """Return another value of the widget; None if it has no other."""
    now = widget.value
    match widget.type:
        case "selectbox" | "select_slider" | "button_group":
            # The values of the options; the widget lists their labels.
            options = list(widget.format_func.__self__)
            return next((each for each in reversed(options) if each != now), None)
        case "multiselect":
            return list(now)[1:] if now else list(widget.format_func.__self__)[:1] or None
        case "slider" | "number_input":
            if isinstance(now, (tuple, list)):
                return (now[0], (now[0] + now[1]) / 2)
            return widget.max if now != widget.max else widget.min
        case "text_input":
            return "return 1"
    return None


def choices(app: AppTest) -> list[str]:
    """Return the keys of the widgets with a value in the address."""
    keys = (str(getattr(each, "key", "")) for part in (app.main, app.sidebar) for each in part)
    return [key for key in keys if key.startswith("address.")]


def widget(app: AppTest, key: str) -> Any:
    every = (each for part in (app.main, app.sidebar) for each in part)
    return next((each for each in every if getattr(each, "key", None) == key), None)


PAGES = ("overview", "queries", "rank_shifts", "latency", "cost", "policy", "history", "report")


@pytest.mark.parametrize("page", PAGES)
def test_each_choice_is_in_the_address(page, shop):
    """Choices of the sidebar are made on Latency, the fastest page, and checked on Overview."""

    app = opened(page, shop)
    assert seen(opened(page, address_of(app))) == seen(app)
    for key in choices(app):
        moved = widget(app, key)
        beside = page != "latency" and moved in app.sidebar
        value = None if moved is None or beside or key == "address.data" else another(moved)
        if value is None:
            continue
        before = address_of(app)
        moved.set_value(value)
        app.run()
        assert not app.exception
        assert address_of(app) != before, f"{key} was set to {value!r}"
    if page == "latency":
        page = "overview"
        app.switch_page(str(ROOT / "pages" / "overview.py")).run()
    assert seen(opened(page, address_of(app))) == seen(app)


def test_the_system_in_focus_is_in_the_address_from_the_first_drawing_on(workspace, shop):
    runs = {row.name: row.id for row in workspace.runs(shop["data"])}
    address = {**shop, "system": list(runs.values())}
    for page in ("overview", "rank_shifts", "cost", "queries"):
        app = opened(page, address)
        assert address_of(app)["vs"] in (runs["top"], [runs["top"]]), page
    # By NDCG@3 another system is the best, and the system in focus does not change.
    app.select_slider(key="address.k").set_value("3").run()
    for again in (app, opened(page, address_of(app))):
        assert widget(again, "address.vs").value == runs["top"]
    gone = opened(page, {**address, "k": "3", "vs": "f" * 16})
    assert widget(gone, "address.vs").value == runs["both"]
    assert "“ffffffffffffffff”" in str(gone.warning[0].value)
