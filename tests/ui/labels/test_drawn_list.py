"""The list of what to label next with its draws: out as a file, filled in, and back."""

import contextlib
import io
import json
from dataclasses import asdict

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from rankdash import sharing
from rankdash.analysis.labels.labelling import merge_labels, to_label_jsonl
from rankdash.cli import main
from rankdash.errors import DataError
from rankdash.loading import load
from rankdash.readers import Source, read
from rankdash.spreadsheet import csv_bytes
from rankdash.store import Workspace
from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.label_plans import LabelPlans
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE
from rankdash.ui.labelling import label_files
from rankdash.ui.labels import new_labels, unjudged_view
from rankdash.ui.state import label_plan, server, stored
from rankdash.ui.state.label_plan import LabelSettings
from tests.ui.parts import drawn

QUERIES, DOCS = 30, 6


def _trec(order, prefix="") -> bytes:
    return "".join(
        f"q{query} Q0 {prefix}q{query}d{doc} {rank} {50 - rank} s\n"
        for query in range(QUERIES)
        for rank, doc in enumerate(order, 1)
    ).encode()


@pytest.fixture
def prefix() -> str:
    """What the ids of documents begin with."""
    return ""


@pytest.fixture
def shop(workspace, prefix) -> str:
    """Two rankings of 30 queries, the second the first turned around, and two labels."""
    ids = [f"{prefix}q{query}d{doc}" for query in range(QUERIES) for doc in range(DOCS)]
    files = {
        "queries.jsonl": "".join(
            json.dumps({"_id": f"q{n}", "text": f"question {n}"}) + "\n" for n in range(QUERIES)
        ),
        "corpus.jsonl": "".join(json.dumps({"_id": i, "text": f"text {i}"}) + "\n" for i in ids),
        "qrels.tsv": f"query-id\tcorpus-id\tscore\nq0\t{prefix}q0d0\t1\nq1\t{prefix}q1d5\t0\n",
    }
    sources = [Source(name, text.encode()) for name, text in files.items()]
    sources.append(Source("initial.trec", _trec(range(DOCS), prefix)))
    sources.append(Source("turned.trec", _trec([*reversed(range(DOCS))], prefix)))
    loaded = load(sources, name="Two")
    workspace.save_dataset(loaded.dataset, report_json=loaded.report.to_json())
    for run in loaded.runs:
        workspace.save_run(run)
    return loaded.dataset.id


def begin(workspace, dataset_id: str, **changes) -> None:
    systems = tuple(stored.systems(dataset_id))
    assert systems[0] == FIRST_STAGE
    settings = LabelSettings(systems, "dcg@5", 2.0, 1.0, 3, **changes)
    LabelPlans(workspace).begin(dataset_id, asdict(settings), "")


def drawn_list(dataset_id: str) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(unjudged_view.drawn_bytes(csv_bytes, dataset_id)))


def filled(table: pd.DataFrame, count: int) -> pd.DataFrame:
    """The list after a person typed labels into its first rows."""
    table["label"] = table["label"].astype(object)
    last = table["doc_id"].str[-1].astype(int)
    table.loc[table.index[:count], "label"] = (last[:count] < 2) * 2.0
    return table


def saved(table: pd.DataFrame) -> bytes:
    """As a spreadsheet saves what it opened."""
    return table.to_csv(index=False).encode()


WRITTEN = {
    "csv": (csv_bytes, lambda data: pd.read_csv(io.BytesIO(data)), saved),
    "jsonl": (to_label_jsonl, lambda data: pd.read_json(io.BytesIO(data), lines=True),
              to_label_jsonl),
}  # fmt: skip


# As they are, and as a spreadsheet would run them.
@pytest.mark.parametrize("prefix", ["", "="])
@pytest.mark.parametrize("form", WRITTEN)
@pytest.mark.parametrize("mode", ["weight", "random", "query"])
def test_the_list_comes_back_as_answers_that_the_estimate_counts(workspace, shop, form, mode):
    begin(workspace, shop, mode=mode)
    write, read, again = WRITTEN[form]
    table = read(unjudged_view.drawn_bytes(write, shop))
    plan = label_plan.current(shop).plan
    assert list(table) == [
        "query_id", "query", "doc_id", "document", "label", "rank", "draw", "probability",
    ]  # fmt: skip
    assert table["draw"].tolist() == (plan.draw + 1).tolist()
    assert table["probability"].tolist() == pytest.approx(plan.probabilities, rel=1e-9)
    # Nothing tells a system or a rank in one.
    assert not any("turned" in str(cell) for cell in table.to_numpy().ravel())
    assert len(table) == QUERIES * DOCS - 2
    done = 120
    sent = again(filled(table, done))
    assert new_labels.take_answers(shop, Source(f"list.{form}", sent))
    [found] = label_plan.current(shop).status.estimates
    counted = (plan.draw < plan.draw[done]).sum() if mode == "query" else done
    assert (found.labels, found.labels + found.waiting, found.known) == (counted, done, 2)
    assert found.state in ("open", "settled")
    # What is still open is on the next list.
    rest = read(unjudged_view.drawn_bytes(write, shop))
    assert rest["draw"].tolist() == (plan.draw[done:] + 1).tolist()


def test_people_times_and_what_cannot_be_told_come_back_too(workspace, shop):
    begin(workspace, shop)
    table = drawn_list(shop)[:3]
    table["label"] = ["1", "cannot tell", "0"]
    table["rater"] = ["Ann", "<b>Bo</b>", "Ann"]
    table["time"] = ["2026-11-01T10:00:00Z", "2026-11-01T10:00:05Z", "2026-11-01T10:00:20Z"]
    assert new_labels.take_answers(shop, Source("list.csv", saved(table)))
    status = label_plan.current(shop).status
    assert (status.cannot_tell, status.estimates[0].labels) == (1, 3)
    assert [(each.name, each.answers) for each in status.raters] == [("<b>Bo</b>", 1), ("Ann", 2)]
    assert status.seconds == 20
    # The file of the page comes back as it went out, into a plan that was begun anew.
    file = label_files.table_bytes(shop)
    Corrections(workspace).withdraw(shop, [each.pair for each in Corrections(workspace).all(shop)])
    assert label_plan.current(shop).status.estimates[0].labels == 0
    assert new_labels.take_answers(shop, Source("labels.csv", file))
    assert label_plan.current(shop).status.numbers() == status.numbers()


def test_draws_of_another_plan_and_labels_above_the_scale_are_not_taken(workspace, shop):
    begin(workspace, shop)
    table = filled(drawn_list(shop), 20)
    moved = table.assign(draw=table["draw"].iloc[::-1].to_numpy())
    for other in (moved, table.drop(columns=["draw", "probability"])):
        assert not new_labels.take_answers(shop, Source("list.csv", saved(other)))
    table.loc[19, "label"] = 7
    with pytest.raises(DataError, match="above the top of the scale"):
        new_labels.take_answers(shop, Source("list.csv", saved(table)))
    assert Corrections(workspace).log(shop) == []


def test_every_estimate_can_be_made_again_from_a_workspace_file(workspace, shop, monkeypatch):
    begin(workspace, shop)
    table = filled(drawn_list(shop), 90)
    assert new_labels.take_answers(shop, Source("list.csv", saved(table)))
    wanted = label_plan.current(shop).status.numbers()
    content = io.BytesIO()
    sharing.export(workspace, content, "1.2.3", None)
    elsewhere = Workspace.open(workspace.root / "elsewhere")
    sharing.bring_in(elsewhere, content, "shop.rankdash.zip")
    monkeypatch.setenv("RANKDASH_HOME", str(elsewhere.root))
    server.workspace.cache_clear()
    st.cache_resource.clear()
    assert label_plan.current(shop).status.numbers() == wanted


def command(*arguments: object) -> dict:
    """What a command wrote as JSON."""
    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        assert main([*map(str, arguments), "--json"]) in (0, 1)
    return json.loads(written.getvalue())


@pytest.fixture
def files(tmp_path_factory):
    """The same rankings and labels as files."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "initial.trec").write_bytes(_trec(range(DOCS)))
    (folder / "turned.trec").write_bytes(_trec([*reversed(range(DOCS))]))
    (folder / "qrels.txt").write_text("q0 0 q0d0 1\nq1 0 q1d5 0\n")
    return folder


def test_the_file_of_the_page_is_read_by_every_command(workspace, shop, files):
    begin(workspace, shop)
    table = filled(drawn_list(shop), 90)
    assert new_labels.take_answers(shop, Source("list.csv", saved(table)))
    [wanted] = label_plan.current(shop).status.numbers()["estimates"]
    labels, old, new = files / "labels.csv", files / "initial.trec", files / "turned.trec"
    labels.write_bytes(label_files.table_bytes(shop))
    sides = ("--baseline", old, "--challenger", new)
    told = [
        command("evaluate", labels, old, new),
        command("compare", "--qrels", labels, *sides),
        command("gate", "--qrels", labels, *sides, "--min-gain", "dcg@5=0", "--confidence", 0.975),
    ]
    for each in told:
        [found] = each["labelling"]["estimates"]
        for name in ("difference", "low", "high"):
            assert found[name] == pytest.approx(wanted[name], rel=1e-9)
        assert (found["labels"], found["known"], found["pairs"]) == (90, 2, 180)
    assert told[2]["conditions"][0]["estimated"]
    # Into a plan of the command, where the order of the draws is another one.
    plan = files / "plan.jsonl"
    made = ("--metric", "dcg@5", "--top", 2, "--qrels", files / "qrels.txt", "--out", plan)
    command("label", "plan", "--run", old, new, *made)
    added = command("label", "add", plan, labels)
    assert (added["added"], added["ignored"]) == (90, 2)
    [found] = command("label", "status", plan)["estimates"]
    assert found["labels"] + found["waiting"] == 90


def test_the_file_of_a_command_is_read_by_the_page(workspace, shop, files):
    begin(workspace, shop)
    plan, labels = files / "plan.jsonl", files / "labels.csv"
    made = ("--metric", "dcg@5", "--top", 2, "--qrels", files / "qrels.txt", "--out", plan)
    command("label", "plan", "--run", files / "initial.trec", files / "turned.trec", *made)
    cards = command("label", "next", plan, "--count", 20)
    table = pd.DataFrame(cards).assign(label=1.0, rater="Ann")
    table.to_csv(files / "given.csv", index=False)
    command("label", "add", plan, files / "given.csv")
    command("label", "status", plan, "--out", labels)
    # Draws of another plan: any labels, which become those of a new data set beside this one.
    source = Source("labels.csv", labels.read_bytes())
    assert not new_labels.take_answers(shop, source)
    merged = merge_labels(stored.dataset(shop), read([source]).qrels)
    assert (merged.added, merged.same, merged.unknown) == (20, 2, 0)


@pytest.mark.parametrize(
    "settings",
    [{}, {"systems": 3}, {"metric": "ndcg@10"}, {"top": -1}, {"systems": ["first_stage"]}],
)
def test_a_plan_that_is_none_breaks_no_page(workspace, shop, settings):
    systems = list(stored.systems(shop))
    sound = asdict(LabelSettings(tuple(systems), "dcg@5", 2.0, 1.0, 3))
    LabelPlans(workspace).begin(shop, {**sound, **settings} if settings else {}, "")
    assert label_plan.current(shop) is None


@pytest.fixture
def listed(shop) -> AppTest:
    """The part of the page that lists what to label next."""

    def draw() -> None:
        systems = stored.systems(shop)
        first, *others = systems
        unjudged_view.draw(
            Study(stored.dataset(shop), systems, first, tuple(others), dataset_id=shop)
        )

    return drawn(draw)


def test_the_order_is_that_of_draws_unless_the_largest_effect_is_chosen(listed, workspace, shop):
    assert not listed.get("download_button")
    listed.button(key="unjudged.draw").click().run()
    assert not listed.exception
    kept = LabelPlans(workspace).newest(shop)
    # NDCG is no sum over documents, so the draws are for DCG at the same cutoff.
    assert (kept.settings["metric"], kept.settings["top"]) == ("dcg@10", 1.0)
    assert len(listed.get("download_button")) == 2
    assert any("unbiased estimate" in each.value for each in listed.caption)
    listed.segmented_control(key="unjudged.order").set_value("largest").run()
    assert any("is biased" in each.value for each in listed.caption)
    assert len(listed.get("download_button")) == 2
    assert not any("unbiased" in each.value for each in listed.caption)


def test_a_read_only_workspace_draws_nothing(listed, monkeypatch):
    monkeypatch.setattr(unjudged_view, "read_only", lambda: True)
    listed.run()
    assert not [each for each in listed.button if each.key == "unjudged.draw"]
