"""Every page in every language: it draws without errors, and shows the expected texts."""

import ast
from pathlib import Path

import pytest

from rankdash.kit.widgets import address, view
from tests.approved import table
from tests.stored import keep_lists, keep_rows
from tests.ui.page_text import page_text
from tests.ui.parts import component, send
from tests.ui.sessions import page

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))


def texts(app) -> str:
    kinds = (app.title, app.header, app.caption, app.markdown, app.info, app.error, app.success)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def in_address(app, name: str) -> list[str]:
    value = app.query_params[name]
    return [value] if isinstance(value, str) else list(value)


def open_page(app, name: str, **params: str | list[str]):
    for key, value in params.items():
        app.query_params[key] = value
    if name != "overview":
        app.switch_page(str(ROOT / "pages" / f"{name}.py"))
    app.run()
    assert not app.exception
    return app


@pytest.mark.parametrize(("name", "given"), [("overview", {}), ("cost", {"part": "prices"})])
def test_an_empty_cell_of_a_table_that_a_person_edits_is_a_dash(app, stored, name, given):
    """Without it a library shows an English word."""
    app.session_state["overview.targets"] = True
    open_page(app, name, **given)
    assert {each.proto.placeholder for each in app.dataframe if each.proto.editing_mode} == {"–"}


OPEN = {f"overview.{each}": True for each in ("table", "targets", "definitions")}
FEW = "query_id,query,doc_id,document,label,score\n" + "".join(
    f"q{q},text {q},d{d},document {d},{int(d == 1)},{2 - d}\n" for q in range(3) for d in range(2)
)


def test_the_first_page_by_other_rules_and_with_too_few_queries(workspace, stored, approved):
    """The relevant documents are at ranks 1 to 4, four times each; the run puts them first and
    fails on one."""
    (run,) = workspace.runs(stored)
    few = keep_rows(workspace, FEW, "Few")
    best = [(f"q{q}", ["d1", "d0"], [2.0, 1.0]) for q in range(3)]
    turned = keep_lists(workspace, few, best, "turned")
    with workspace.database.writing() as db:
        db.execute("UPDATE runs SET created = '2026-11-03T10:00:00+00:00'")
    rules = {"judged_only": "True", "level": "0.9", "metric": "mrr", "k": "3"}
    cases = {
        "as usual, one query failed": ({}, {}),
        "rules that are no defaults, all parts open": (rules, OPEN),
        "too few queries": ({"data": few, "system": turned.id}, {}),
    }
    usual = {"data": stored, "base": "first-stage", "system": run.id, "metric": "ndcg", "k": "10"}
    told = {
        why: page_text(page("overview", chosen=usual | chosen, state=state))
        for why, (chosen, state) in cases.items()
    }
    approved("pages/overview.en", table(told).replace(run.id, "<id>"))


def test_a_chosen_reason_opens_the_queries_that_it_explains(app, stored, monkeypatch):
    went = []
    monkeypatch.setattr(view, "go", lambda page: went.append((page, address.one("reason"))))
    open_page(app, "overview")
    reason = component(app, "reasons")["rows"][0]["code"]
    send(app, "reasons", reason)
    assert went == [("queries", reason)]


@pytest.mark.parametrize("name", PAGES)
def test_pages_stay_thin(name):
    assert len((ROOT / "pages" / f"{name}.py").read_text().splitlines()) < 150


def test_nothing_renders_raw_html_or_remote_icons():
    for path in [*(ROOT / "rankdash").rglob("*.py"), *(ROOT / "pages").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            assert not isinstance(node, ast.keyword) or node.arg != "unsafe_allow_html", path
