"""The sampled list of documents to label: exported, completed, and imported."""

import contextlib
import io
import json

import pandas as pd
import pytest
import streamlit as st

from rankdash.app.command import main
from rankdash.core.base.errors import DataError
from rankdash.core.base.text import csv_bytes
from rankdash.core.readers import Source, read
from rankdash.core.study.labelling import merge_labels, to_label_jsonl
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.notes import Corrections, LabelPlans
from rankdash.core.workspace.workspace_file import archive, import_workspace
from rankdash.kit.widgets import stored
from rankdash.kit.widgets.labels import corrections, unjudged
from rankdash.kit.widgets.labels import plan as labels_plan
from tests.ui.labelling.two_rankings import begin, trec, two_rankings

QUERIES, DOCS = 30, 6
SETTINGS = {"metric": "dcg@5", "top": 2.0, "seed": 3}


def made(workspace: Workspace, prefix: str = "") -> str:
    """Store two rankings of 30 queries, the second reversed, and two labels."""
    labels = f"q0\t{prefix}q0d0\t1\nq1\t{prefix}q1d5\t0\n"
    return two_rankings(workspace, queries=QUERIES, docs=DOCS, prefix=prefix, labels=labels)


@pytest.fixture
def shop(workspace) -> str:
    """Return the id of a data set with a plan."""
    dataset_id = made(workspace)
    begin(workspace, dataset_id, **SETTINGS)
    return dataset_id


def drawn_list(dataset_id: str) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(unjudged.sampled_bytes(csv_bytes, dataset_id)))


def filled(table: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return the list with labels in its first rows."""
    table["label"] = table["label"].astype(object)
    last = table["doc_id"].str[-1].astype(int)
    table.loc[table.index[:count], "label"] = (last[:count] < 2) * 2.0
    return table


def take(dataset_id: str, table: pd.DataFrame) -> bool:
    """Import the list as saved by a spreadsheet program."""
    source = Source("list.csv", table.to_csv(index=False).encode())
    return corrections.take_answers(dataset_id, source)


def of_json(data: bytes) -> pd.DataFrame:
    return pd.read_json(io.BytesIO(data), lines=True)


def of_csv(data: bytes) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(data))


@pytest.mark.parametrize(
    ("mode", "prefix", "write", "opened"),
    [
        # A spreadsheet would run these ids.
        ("weight", "=", csv_bytes, of_csv),
        ("random", "", csv_bytes, of_csv),
        ("query", "=", to_label_jsonl, of_json),
    ],
)
def test_the_list_comes_back_as_answers_that_the_estimate_counts(
    workspace, mode, prefix, write, opened
):
    shop = made(workspace, prefix)
    begin(workspace, shop, mode=mode, **SETTINGS)
    table = opened(unjudged.sampled_bytes(write, shop))
    plan = labels_plan.current(shop).plan
    assert list(table) == [
        "query_id", "query", "doc_id", "document", "label", "rank", "draw", "probability",
    ]  # fmt: skip
    assert table["draw"].tolist() == (plan.draw + 1).tolist()
    assert table["probability"].tolist() == pytest.approx(plan.probabilities, rel=1e-9)
    # The list contains no name of a system and no rank.
    assert not any("turned" in str(cell) for cell in table.to_numpy().ravel())
    assert len(table) == QUERIES * DOCS - 2
    done = 120
    if write is csv_bytes:
        assert take(shop, filled(table, done))
    else:
        assert corrections.take_answers(shop, Source("list.jsonl", write(filled(table, done))))
    [found] = labels_plan.current(shop).status.estimates
    counted = (plan.draw < plan.draw[done]).sum() if mode == "query" else done
    assert (found.labels, found.labels + found.waiting, found.known) == (counted, done, 2)
    # The next list contains the documents without a label.
    rest = opened(unjudged.sampled_bytes(write, shop))
    assert rest["draw"].tolist() == (plan.draw[done:] + 1).tolist()


def test_people_times_and_what_cannot_be_told_come_back_too(workspace, shop):
    table = drawn_list(shop)[:3]
    table["label"] = ["1", "cannot tell", "0"]
    table["rater"] = ["Ann", "<b>Bo</b>", "Ann"]
    table["time"] = ["2026-11-01T10:00:00Z", "2026-11-01T10:00:05Z", "2026-11-01T10:00:20Z"]
    assert take(shop, table)
    status = labels_plan.current(shop).status
    assert (status.cannot_tell, status.estimates[0].labels) == (1, 3)
    assert [(each.name, each.answers) for each in status.raters] == [("<b>Bo</b>", 1), ("Ann", 2)]
    assert status.seconds == 20
    # The exported labels are imported into a new plan.
    file = unjudged.table_bytes(shop)
    Corrections(workspace).withdraw(shop, [each.pair for each in Corrections(workspace).all(shop)])
    assert labels_plan.current(shop).status.estimates[0].labels == 0
    assert corrections.take_answers(shop, Source("labels.csv", file))
    assert labels_plan.current(shop).status.numbers() == status.numbers()


def test_draws_of_another_plan_and_labels_above_the_scale_are_not_taken(workspace, shop):
    table = filled(drawn_list(shop), 20)
    moved = table.assign(draw=table["draw"].iloc[::-1].to_numpy())
    for other in (moved, table.drop(columns=["draw", "probability"])):
        assert not take(shop, other)
    table.loc[19, "label"] = 7
    with pytest.raises(DataError, match="highest grade of the scale"):
        take(shop, table)
    assert Corrections(workspace).log(shop) == []


def test_every_estimate_can_be_made_again_from_a_workspace_file(workspace, shop, monkeypatch):
    assert take(shop, filled(drawn_list(shop), 90))
    wanted = labels_plan.current(shop).status.numbers()
    content = io.BytesIO()
    archive.export(workspace, content, "1.2.3", None)
    elsewhere = Workspace.open(workspace.root / "elsewhere")
    import_workspace.bring_in(elsewhere, content, "shop.rankdash.zip")
    monkeypatch.setenv("RANKDASH_HOME", str(elsewhere.root))
    stored.workspace.cache_clear()
    st.cache_resource.clear()
    assert labels_plan.current(shop).status.numbers() == wanted


def command(*arguments: object) -> dict:
    """Return the JSON output of a command."""
    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        assert main([*map(str, arguments), "--json"]) in (0, 1)
    return json.loads(written.getvalue())


def test_files_of_labels_go_from_the_page_to_commands_and_back(shop, tmp_path_factory):
    files = tmp_path_factory.mktemp("files")
    ranked, plan, labels = (files / "old.trec", files / "new.trec"), files / "plan", files / "a.csv"
    for file, order in zip(ranked, (range(DOCS), reversed(range(DOCS))), strict=True):
        file.write_bytes(trec([*order], range(QUERIES)))
    (files / "qrels.txt").write_text("q0 0 q0d0 1\nq1 0 q1d5 0\n")
    assert take(shop, filled(drawn_list(shop), 90))
    [wanted] = labels_plan.current(shop).status.numbers()["estimates"]
    labels.write_bytes(unjudged.table_bytes(shop))
    [found] = command("evaluate", labels, *ranked)["labelling"]["estimates"]
    for name in ("difference", "low", "high"):
        assert found[name] == pytest.approx(wanted[name], rel=1e-9)
    assert (found["labels"], found["known"], found["pairs"]) == (90, 2, 180)
    # The labels are added to a plan of the command, with draws in another order.
    of_plan = ("--metric", "dcg@5", "--top", 2, "--qrels", files / "qrels.txt", "--out", plan)
    command("label", "plan", "--run", *ranked, *of_plan)
    added = command("label", "add", plan, labels)
    assert (added["added"], added["ignored"]) == (90, 2)
    [found] = command("label", "status", plan, "--out", labels)["estimates"]
    assert found["labels"] + found["waiting"] == 90
    # Draws of another plan are ordinary labels: they become labels of a new data set.
    source = Source("labels.csv", labels.read_bytes())
    assert not corrections.take_answers(shop, source)
    merged = merge_labels(stored.dataset(shop), read([source]).qrels)
    assert (merged.added, merged.same, merged.unknown) == (90, 2, 0)


@pytest.mark.parametrize(
    "settings",
    [{}, {"systems": 3}, {"metric": "ndcg@10"}, {"top": -1}, {"systems": ["first_stage"]}],
)
def test_a_plan_that_is_none_breaks_no_page(workspace, shop, settings):
    sound = LabelPlans(workspace).newest(shop).settings
    LabelPlans(workspace).begin(shop, {**sound, **settings} if settings else {}, "")
    assert labels_plan.current(shop) is None
