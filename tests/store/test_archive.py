"""A workspace as one file: what comes out is what went in, and no broken file adds anything."""

import errno
import gc
import hashlib
import io
import json
import shutil
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rankdash import sharing
from rankdash.analysis.labels.check import check
from rankdash.analysis.reasons.occlusion import Explanation
from rankdash.dataset import Dataset
from rankdash.errors import FormatError, LimitError, RankdashError, StoreError
from rankdash.i18n import error_text, speaking
from rankdash.ranking.ranking import Ranking
from rankdash.rerankers.judging.judge import SETTINGS
from rankdash.rerankers.settings import completed
from rankdash.store import Workspace
from rankdash.store.jobs.explanations import Asked, Explanations
from rankdash.store.jobs.judges import StoredJudges
from rankdash.store.jobs.leases import Owner
from rankdash.store.jobs.queue import Queue
from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.label_notes import LabelNotes
from rankdash.store.notes.label_plans import LabelPlans
from rankdash.store.notes.notes import Notes
from rankdash.store.notes.pins import Pins
from rankdash.store.notes.run_notes import RunNotes
from rankdash.store.workspace_file.archive import (
    DAMAGED_DATASET,
    DAMAGED_JUDGE,
    DAMAGED_RUN,
    without_paths,
)
from rankdash.store.workspace_file.import_workspace import Judges, take_in
from rankdash.store.workspace_file.workspace_zip import MANIFEST, Bounds, Packer, Unpacker
from rankdash.value.assumptions import Assumptions

PLAN = {"systems": ["a"], "metric": "dcg@10", "top": 3.0, "threshold": 1.0, "seed": 3}
EXPLAINED = Explanation(0.5, (), 5, 7).to_json()


def save(workspace, dataset):
    return workspace.save_dataset(dataset, "upload", check(dataset, [], {}).to_json())


@pytest.fixture
def full(made, tmp_path):
    """A workspace with something of everything that is shared, and of what is not."""
    return Workspace.open(shutil.copytree(made, tmp_path / "home"))


@pytest.fixture(scope="module")
def made(tmp_path_factory, make_dataset, make_run):
    """The folder of the same, which nobody opens."""
    workspace = Workspace(tmp_path_factory.mktemp("made") / "home")
    dataset = make_dataset("Shop")
    save(workspace, dataset)
    run = replace(
        make_run(dataset),
        settings={"model": "/home/me/models/mini", "base_url": "http://me:pw@host/v1", "k1": 1.2},
    )
    workspace.save_run(run)
    Notes(workspace).keep(dataset.id, "二", ["退货"], "看一下", "Ann")
    layer = Corrections(workspace)
    layer.correct(dataset.id, ("007", "1"), 0.0, "Ann")
    layer.correct(dataset.id, ("007", "01"), 1.0, "Ann")
    layer.withdraw(dataset.id, [("007", "01")])
    layer.correct(dataset.id, ("7", "01"), None, "Ann")
    RunNotes(workspace).keep(run.id, "longer texts", "Ann")
    Pins(workspace).pin(run.id)
    asked, owner = Asked(run.id, "007", "1", "term"), Owner()
    rows = Explanations(workspace)
    rows.ask(asked)
    rows.claim(owner)
    rows.finish(asked.id, owner, "done", result=EXPLAINED)
    rows.ask(replace(asked, doc_id="01"))
    workspace.set_setting(
        "scenarios", sharing.write_scenarios({"careful": Assumptions(elasticity=0.25)})
    )
    workspace.set_setting("analyst", "Ann")
    judges, pairs = StoredJudges(workspace), [("007", "1"), ("7", "01"), ("7", "1")]
    for name in ("Mine", "waits"):
        judges.submit(
            dataset_id=dataset.id, name=name, model="tiny", template="abc",
            settings=completed(SETTINGS, {"base_url": "http://me:pw@host/v1", "top": 3}), top=3,
            systems=["a", "b"], depth=2, pairs=pairs, judge_id=f"judge-{name}",
        )  # fmt: skip
    judges.claim(owner)
    judged = [
        {"grade": 2.0, "reason": "看", "error": "", "kind": "", "answers": '[{"grade": 2.0, '
         '"reason": "看", "error": "", "kind": ""}]'},
        {"grade": None, "reason": "", "error": "e", "kind": "time_out", "answers": "[]"},
    ]  # fmt: skip
    rows = [
        {**each, "query_id": query, "doc_id": doc}
        for each, (query, doc) in zip(judged, pairs, strict=False)
    ]
    judges.keep("judge-Mine", owner, rows, {"calls": 2, "billed": {"dollars": 0.5}})
    judges.finish("judge-Mine", owner, "cancelled")
    Queue(workspace).submit(
        dataset_id=dataset.id, name="waits", reranker="bm25", settings={}, depth=None, sample=None,
        seed=0,
    )  # fmt: skip
    return workspace.root


def flip(workspace, pattern):
    (file,) = workspace.root.glob(pattern)
    content = file.read_bytes()
    file.write_bytes(content[:9] + bytes([content[9] ^ 4]) + content[10:])


@pytest.fixture
def other(tmp_path):
    return Workspace.open(tmp_path / "other")


def exported(workspace, ids=None) -> bytes:
    target = io.BytesIO()
    sharing.export(workspace, target, "1.2.3", ids)
    return target.getvalue()


def bring(workspace, content: bytes):
    return sharing.bring_in(workspace, io.BytesIO(content), "shop.rankdash.zip")


def same_frame(ours, theirs):
    pd.testing.assert_frame_equal(ours, theirs)
    return True


def same_workspace(ours, theirs):
    """Everything shared, compared by content."""
    assert [row.id for row in ours.datasets()] == [row.id for row in theirs.datasets()]
    for row in ours.datasets():
        a, b = ours.dataset(row.id), theirs.dataset(row.id)
        assert a.name == b.name
        assert all(
            same_frame(getattr(a, n), getattr(b, n)) for n in ("queries", "documents", "qrels")
        )
        assert same_frame(a.candidates.frame(), b.candidates.frame())
        assert a.candidates.ties == b.candidates.ties
        assert ours.check_report(row.id) == theirs.check_report(row.id)
        assert Notes(ours).all(row.id) == Notes(theirs).all(row.id)
        assert Corrections(ours).all(row.id) == Corrections(theirs).all(row.id)
        assert Pins(ours).of(row.id) == Pins(theirs).of(row.id)
        assert LabelNotes(ours).all(row.id) == LabelNotes(theirs).all(row.id)
        assert RunNotes(ours).all(row.id) == RunNotes(theirs).all(row.id)
        judges, copies = (
            [
                replace(each, settings={})
                for each in StoredJudges(home).rows(row.id)
                if not each.live
            ]
            for home in (ours, theirs)
        )
        assert judges == copies
        for judge in judges:
            assert same_frame(*(StoredJudges(each).grades(judge.id) for each in (ours, theirs)))
    assert [row.id for row in ours.runs()] == [row.id for row in theirs.runs()]
    for row, copy in zip(ours.runs(), theirs.runs(), strict=True):
        assert (row.name, row.created, row.p50_ms, row.p95_ms) == (
            copy.name, copy.created, copy.p50_ms, copy.p95_ms,
        )  # fmt: skip
        a, b = ours.run(row.id), theirs.run(row.id)
        assert same_frame(a.queries, b.queries)
        assert same_frame(a.ranking.frame(), b.ranking.frame())
        assert np.array_equal(a.ranking.given, b.ranking.given)
        assert (a.depth, a.load_ms, repr(a.measured)) == (b.depth, b.load_ms, repr(b.measured))
        assert (a.reading is None) == (b.reading is None)
        assert a.reading is None or np.array_equal(a.reading.full, b.reading.full)
        assert (a.calls is None) == (b.calls is None)
        assert a.calls is None or same_frame(a.calls, b.calls)


def snapshot(workspace):
    return {
        str(file.relative_to(workspace.root)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(workspace.root.rglob("*"))
        if file.is_file()
    }


def repacked(content: bytes, change, *, keep_list=False) -> bytes:
    """The file with `change` made to its parts (name → bytes); the list follows unless kept."""
    with zipfile.ZipFile(io.BytesIO(content)) as read:
        parts = {name: read.read(name) for name in read.namelist()}
    head = json.loads(parts.pop(MANIFEST))
    change(parts, head)
    if not keep_list:
        head["parts"] = {
            name: {"bytes": len(part), "sha256": hashlib.sha256(part).hexdigest()}
            for name, part in parts.items()
        }
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as write:
        for name, part in {MANIFEST: json.dumps(head).encode(), **parts}.items():
            write.writestr(name, part)
    return target.getvalue()


def about(parts, kind="datasets"):
    name = next(name for name in parts if name.startswith(kind) and name.endswith("about.json"))
    return name, json.loads(parts[name])


def test_a_colleague_sees_the_same(full, other):
    found = bring(other, exported(full))
    same_workspace(full, other)
    assert dict(found.added) == {
        "datasets": 1, "runs": 1, "notes": 2, "corrections": 2, "explanations": 1, "settings": 1,
        "judges": 1,
    }  # fmt: skip
    assert found.findings == []
    assert sharing.read_scenarios(other.setting("scenarios"))["careful"].elasticity == 0.25
    row = Explanations(other).find(Asked("run-1", "007", "1", "term"))
    assert (row.state, row.result) == ("done", EXPLAINED)


def test_the_name_of_the_first_stage_goes_along_and_an_older_file_has_none(tmp_path, make_dataset):
    data = make_dataset()
    tables = (data.queries, data.documents, data.qrels, data.candidates)
    named = Dataset("named", *tables, candidates_name="bm25 今天")
    first, second, third = (Workspace(tmp_path / name) for name in "abc")
    first.save_dataset(named, report_json=check(named, (), {}).to_json())
    assert first.dataset(data.id).candidates_name == "bm25 今天"
    bring(second, exported(first))
    assert second.dataset(data.id).candidates_name == "bm25 今天"

    def older(parts, _head):
        name, told = about(parts)
        assert told.pop("candidates_name") == "bm25 今天"
        parts[name] = json.dumps(told).encode()

    bring(third, repacked(exported(first), older))
    assert third.dataset(data.id).candidates_name == ""


def test_notes_of_a_file_that_does_not_say_who_wrote_them_are_taken(full, other):
    def older(parts, _head):
        for kind, field in (("datasets", "notes"), ("runs", "note")):
            name, told = about(parts, kind)
            for note in told[field] if kind == "datasets" else [told[field]]:
                assert note.pop("who") == "Ann"
            parts[name] = json.dumps(told).encode()

    bring(other, repacked(exported(full), older))
    (row,) = other.datasets()
    (note,) = Notes(other).all(row.id)
    assert (note.text, note.who) == ("看一下", "")
    assert [each.who for each in RunNotes(other).all(row.id).values()] == [""]


def test_keys_paths_kept_scores_and_waiting_work_stay_behind(full, other):
    full.score_cache.clear()
    content = exported(full)
    with zipfile.ZipFile(io.BytesIO(content)) as read:
        every = b"".join(read.read(name) for name in read.namelist())
        assert not any("sqlite" in name for name in read.namelist())
    for secret in (str(full.root), "/home/me", "me:pw"):
        assert secret.encode() not in every
    bring(other, content)
    assert other.run("run-1").settings == {"model": "mini", "base_url": "http://host/v1", "k1": 1.2}
    assert Queue(other).rows() == []
    assert other.setting("analyst") is None
    assert Explanations(other).find(Asked("run-1", "007", "01", "term")) is None


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("/a/b/model", "model"), ("C:\\models\\mini", "mini"), ("~/x/y", "y"),
        ("org/model", "org/model"), ("https://k:s@h/v1", "https://h/v1"), (["/a/b", 3], ["b", 3]),
    ],
)  # fmt: skip
def test_what_tells_of_this_machine(value, kept):
    assert without_paths(value) == kept


def test_importing_twice_changes_nothing(full, other):
    content = exported(full)
    bring(other, content)
    before = exported(other)
    found = bring(other, content)
    assert not any(found.added.values())
    assert found.findings == []
    same_workspace(full, other)
    # Also the file itself: the same content is the same file, but for when it was made.
    heads = []
    for each in (before, exported(other)):
        with zipfile.ZipFile(io.BytesIO(each)) as read:
            heads.append(json.loads(read.read(MANIFEST))["parts"])
    assert heads[0] == heads[1]


def test_only_what_is_asked_for_is_exported(full, make_dataset, other):
    second = make_dataset("Second", salt="!")
    save(full, second)
    bring(other, exported(full, [second.id]))
    assert [row.name for row in other.datasets()] == ["Second"]
    with pytest.raises(StoreError, match="no data set"):
        exported(full, ["nowhere"])


def test_what_is_here_stays_and_is_reported(full, other, make_dataset, make_run):
    dataset = make_dataset("My name")
    save(other, dataset)
    mine = make_run(dataset, name="mine")
    other.save_run(replace(mine, ranking=Ranking.from_lists([("7", ["1"], [9.0])]), reading=None))
    Notes(other).keep(dataset.id, "二", [], "my own")
    Corrections(other).correct(dataset.id, ("007", "1"), 2.0, "Bob")
    other.set_setting("scenarios", sharing.write_scenarios({"careful": Assumptions()}))
    found = bring(other, exported(full))
    assert [row.name for row in other.datasets()] == ["My name"]
    assert Notes(other).of(dataset.id, "二").text == "my own"
    kept = {each.pair: each.label for each in Corrections(other).all(dataset.id)}
    # The pair that nobody had corrected here is taken over.
    assert kept == {("007", "1"): 2.0, ("7", "01"): None}
    assert len(other.run("run-1").ranking) == 1
    assert sharing.read_scenarios(other.setting("scenarios"))["careful"].elasticity == 1.0
    assert RunNotes(other).all(dataset.id) == {}
    said = " ".join(finding.text for finding in found.findings)
    for word in ("is called My name here", "run a run is here with other", "note on query 二",
                 "label of document 1 for query 007", "scenario careful differs"):  # fmt: skip
        assert word in said
    assert len(found.findings) == 5


def test_what_differs_in_one_thing_alone_is_reported(full, other, make_dataset):
    dataset = make_dataset("Shop")
    save(other, dataset)
    Notes(other).keep(dataset.id, "二", ["another"], "看一下")
    Corrections(other).correct(dataset.id, ("7", "01"), None, "Bob")
    Corrections(other).withdraw(dataset.id, [("7", "01")])
    Corrections(other).correct(dataset.id, ("007", "1"), 0.0, "Bob")
    found = bring(other, exported(full))
    assert [finding.code for finding in found.findings] == ["archive.note", "archive.correction"]
    assert found.findings[1].params["document"] == "01"


def test_a_run_of_another_data_set_with_the_same_id_is_not_replaced(
    full, other, make_dataset, make_run
):
    dataset = make_dataset("Another", salt="!")
    save(other, dataset)
    other.save_run(make_run(dataset))
    found = bring(other, exported(full))
    assert other.run("run-1").dataset_id == dataset.id
    assert [finding.code for finding in found.findings] == ["archive.run"]


def test_a_scenario_of_an_older_version_is_read():
    (found,) = sharing.read_scenarios('{"old": {"share": 0.5}}').values()
    assert found.traffic_share == 0.5


BROKEN = {}


def broken(change):
    BROKEN[change.__name__] = change
    return change


@broken
def wrong_hash(content):
    def change(parts, head):
        name, _told = about(parts)
        parts[name] = parts[name].replace(b"Shop", b"Shed")

    return repacked(content, change, keep_list=True)


@broken
def missing_member(content):
    return repacked(content, lambda parts, head: parts.pop(about(parts)[0]), keep_list=True)


@broken
def missing_table(content):
    return repacked(
        content,
        lambda parts, head: parts.pop(next(n for n in parts if n.endswith("qrels.parquet"))),
    )


@broken
def stray_member(content):
    return repacked(content, lambda parts, _: parts.update({"more.txt": b"x"}), keep_list=True)


@broken
def path_traversal(content):
    return repacked(content, lambda parts, _: parts.update({"../../evil": b"x"}))


@broken
def absolute_path(content):
    return repacked(content, lambda parts, _: parts.update({"/etc/evil": b"x"}))


@broken
def id_that_is_a_path(content):
    def change(parts, head):
        (old,) = head["datasets"]
        head["datasets"] = {"../x": head["datasets"][old]}

    return repacked(content, change)


@broken
def content_that_is_not_its_id(content):
    def change(parts, head):
        (old,) = head["datasets"]
        new = "0" * 16
        head["datasets"] = {new: head["datasets"][old]}
        for name in [name for name in parts if old in name]:
            parts[name.replace(old, new)] = parts.pop(name)

    return repacked(content, change)


@broken
def no_manifest(content):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as write:
        write.writestr("anything", "else")
    return target.getvalue()


@broken
def another_format(content):
    return repacked(content, lambda _, head: head.update(format="something"))


@broken
def list_that_is_none(content):
    return repacked(content, lambda _, head: head.update(parts=[1]), keep_list=True)


@broken
def size_that_is_none(content):
    def change(parts, head):
        head["parts"][about(parts)[0]]["bytes"] = "many"

    return repacked(content, change, keep_list=True)


@broken
def truncated(content):
    return content[: len(content) // 2]


@broken
def no_zip(content):
    return b"query_id,doc_id\n"


@broken
def empty(content):
    return b""


def _table(content, ending, change):
    def rewrite(parts, _head):
        name = next(name for name in parts if name.endswith(ending))
        target = io.BytesIO()
        pq.write_table(change(pq.read_table(io.BytesIO(parts[name]))), target)
        parts[name] = target.getvalue()

    return repacked(content, rewrite)


@broken
def run_listed_twice(content):
    def change(parts, head):
        (runs,) = head["datasets"].values()
        runs *= 2

    return repacked(content, change)


@broken
def two_members_of_the_same_name(content):
    target = io.BytesIO(content)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(target, "a") as more:
        name = next(name for name in more.namelist() if name.endswith("qrels.parquet"))
        # The same content too: which of them is meant is not for us to say.
        more.writestr(name, more.read(name))
    return target.getvalue()


@broken
def table_that_is_none(content):
    return repacked(
        content,
        lambda parts, _: parts.update(
            {next(n for n in parts if n.endswith("qrels.parquet")): b"PAR1 not really PAR1"}
        ),
    )


@broken
def negative_codes(content):
    codes = pa.array(np.full(4, -1, dtype=np.int32))
    return _table(content, "ranking.parquet", lambda t: t.set_column(0, "document", codes))


@broken
def scores_out_of_order(content):
    scores = pa.array([1.0, 2.0, 3.0, 4.0])
    return _table(content, "ranking.parquet", lambda t: t.set_column(1, "score", scores))


@broken
def ties_hidden(content):
    tied = pa.array([False, False])
    return _table(content, "ranking-queries.parquet", lambda t: t.set_column(2, "tied", tied))


@broken
def foreign_document(content):
    ids = pa.array(["01", "1", "elsewhere"])
    return _table(content, "ranking-documents.parquet", lambda t: t.set_column(0, "doc_id", ids))


@broken
def unknown_state(content):
    state = pa.array(["done", "great", "failed"])
    return _table(content, "runs/run-1/queries.parquet", lambda t: t.set_column(1, "state", state))


@broken
def measured_nonsense(content):
    return _table(
        content, "measured.parquet",
        lambda t: pa.table({"measured": ['{"pairs": "many", "throughput": []}']}),
    )  # fmt: skip


def _about(content, kind, **fields):
    def rewrite(parts, _head):
        name, told = about(parts, kind)
        parts[name] = json.dumps(told | fields).encode()

    return repacked(content, rewrite)


def report(**changes):
    finding = {"severity": "note", "code": "x", "template": "{n:,} rows.", "params": {"n": 1},
               "remedy": "", "file": "", "line": None, "count": 1, "examples": []}  # fmt: skip
    ranking = {"name": "first", "queries": 1, "rows": 1, "judged_at_10": 1.0, "tied_queries": 0,
               "tied_rows": 0}  # fmt: skip
    found = {"queries": 1, "documents": 1, "labels": 1, "labelled_queries": 1,
             "candidates_per_query": None, "label_histogram": [], "query_chars": None,
             "document_chars": None, "rankings": [ranking], "findings": []}  # fmt: skip
    if "finding" in changes:
        found["findings"] = [finding | changes.pop("finding")]
    return json.dumps(found | changes)


def test_a_report_as_it_should_be_is_taken():
    sharing.check_report(report(finding={}))


# What would break the page each time it is drawn.
REPORTS = [
    report(rankings=[]),
    report(queries="many"),
    report(label_histogram=[{"low": "a", "high": 1, "count": 1}]),
    report(finding={"template": "{lacking} rows."}),
    report(finding={"template": "{n:>1000000000}"}),
    report(finding={"template": "{n.__class__}"}),
    report(finding={"severity": "fatal"}),
    report(finding={"examples": [1]}),
]

JUDGED = {
    "query_id": "7", "doc_id": "1", "grade": 3.0, "reason": "r", "error": "", "kind": "",
    "answers": [],
}  # fmt: skip
JUDGE = {
    "id": "j", "name": "n", "model": "m", "template": "t", "settings": {}, "top": 3,
    "systems": ["a"], "depth": 1, "state": "done", "usage": {}, "unsettled": 0,
    "created": "2026-01-01", "started": None, "finished": None, "pairs": [JUDGED],
}  # fmt: skip
ABOUT = {
    "name": ("datasets", {"name": 3}),
    "surrogate": ("runs", {"name": "\ud800"}),
    "report": ("datasets", {"report": "[]"}),
    **{f"report {place}": ("datasets", {"report": text}) for place, text in enumerate(REPORTS)},
    "foreign note": ("datasets", {"notes": [{"query_id": "x", "tags": [], "note": "y",
                                             "changed": "2026-01-01"}]}),
    "long note": ("datasets", {"notes": [{"query_id": "7", "tags": [], "note": "y" * 5000,
                                          "changed": "2026-01-01"}]}),
    "correction": ("datasets", {"corrections": [{"query_id": "7", "doc_id": "1", "label": "high",
                                                 "withdrawn": 0, "who": "",
                                                 "made": "2026-01-01"}]}),
    "rows": ("datasets", {"corrections": {"a": 1}}),
    "time": ("runs", {"created": "yesterday"}),
    "settings": ("runs", {"settings": []}),
    "depth": ("runs", {"depth": "deep"}),
    "explanation": ("runs", {"explanations": [{"query_id": "7", "doc_id": "1", "level": "term",
                                               "result": "{}", "finished": "2026-01-01"}]}),
    "foreign explanation": ("runs", {"explanations": [{
        "query_id": "7", "doc_id": "x", "level": "term", "finished": "2026-01-01",
        "result": EXPLAINED}]}),
    "foreign correction": ("datasets", {"corrections": [{
        "query_id": "7", "doc_id": "x", "label": 1.0, "withdrawn": 0, "who": "",
        "made": "2026-01-01"}]}),
    "judge off its scale": ("datasets", {"judges": [{**JUDGE, "pairs": [{**JUDGED, "grade": 4}]}]}),
    "judge of texts": ("datasets", {"judges": [{**JUDGE, "id": "../x"}]}),
    "judge under way": ("datasets", {"judges": [{**JUDGE, "state": "running"}]}),
    "foreign judged pair": ("datasets", {"judges": [{**JUDGE, "pairs": [{**JUDGED,
                                                                        "doc_id": "x"}]}]}),
    "judge without an error": ("datasets", {"judges": [{**JUDGE, "pairs": [{**JUDGED,
                                                                           "grade": None}]}]}),
    "plan of no log": ("datasets", {"plan": {
        "id": "p", "settings": {}, "before": 99, "guidelines": "", "created": "2026-01-01",
        "pauses": []}}),
    "plan of texts": ("datasets", {"plan": {
        "id": "../p", "settings": {}, "before": 0, "guidelines": "", "created": "2026-01-01",
        "pauses": []}}),
    "foreign label note": ("datasets", {"label_notes": [{
        "query_id": "7", "doc_id": "x", "who": "", "note": "y"}]}),
    "explanation of texts": ("runs", {"explanations": [{
        "query_id": "7", "doc_id": "1", "level": "term", "finished": "2026-01-01",
        "result": '{"score": "high", "stages": [], "read": 1, "full": 1}'}]}),
}  # fmt: skip


@pytest.mark.parametrize("kind", [*BROKEN, *ABOUT, "shared settings"])
def test_a_broken_file_is_refused_in_words_and_adds_nothing(full, other, make_dataset, kind):
    save(other, make_dataset("Mine", salt="!"))
    content = exported(full)
    if kind in BROKEN:
        content = BROKEN[kind](content)
    elif kind in ABOUT:
        content = _about(content, ABOUT[kind][0], **ABOUT[kind][1])
    else:
        content = repacked(
            content,
            lambda parts, _: parts.update(
                {"settings.json": b'{"settings": {"scenarios": "{\\"a\\": {\\"no\\": 1}}"}}'}
            ),
        )
    before = snapshot(other)
    with pytest.raises(FormatError, match="Nothing was imported") as refused:
        bring(other, content)
    assert refused.value.file == "shop.rankdash.zip"
    assert refused.value.remedy
    assert snapshot(other) == before
    assert not (other.root / "runs").exists() or list((other.root / "runs").iterdir()) == []


def test_a_refusal_names_the_part_and_the_place_in_it_in_both_languages(full, other):
    with pytest.raises(FormatError, match=r"datasets/\w+/about\.json .*\$\.name") as refused:
        bring(other, _about(exported(full), "datasets", name=3))
    with speaking("zh"):
        words = error_text(refused.value)
    assert "about.json 不符合 rankdash 写出的格式" in words
    assert "请重新复制或导出" in words


def test_a_newer_version_is_refused_with_what_to_do(full, other):
    content = repacked(exported(full), lambda _, head: head.update(version=2, rankdash="9.9"))
    with pytest.raises(FormatError, match=r"newer rankdash \(9\.9\).*Update"):
        bring(other, content)


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(parts=3),
        Bounds(manifest=10),
        Bounds(part=10),
        Bounds(together=1_000),
        Bounds(decoded=10),
    ],
)
def test_what_is_too_large_is_refused(full, other, bounds):
    content = exported(full)
    nothing = dict.fromkeys(("report", "explanation", "plan"), lambda _: None)
    judges = Judges(
        **nothing, settings=lambda own: (own, ()), settle=lambda _theirs, _ours: ({}, []), shared=()
    )
    with pytest.raises(LimitError, match="Nothing was imported"):
        take_in(other, io.BytesIO(content), "big", judges, bounds=bounds)
    assert other.datasets() == []


def test_what_is_just_as_large_as_is_taken_is_taken():
    table, stream, target = pa.table({"n": list(range(50))}), io.BytesIO(), io.BytesIO()
    pq.write_table(table, stream)
    packer = Packer(target)
    packer.add("a", b"12345")
    packer.add("t", stream.getvalue())
    packer.close({"format": "x"})
    with zipfile.ZipFile(target) as zipped:
        manifest = zipped.getinfo(MANIFEST).file_size
    size = len(stream.getvalue())
    decoded = sum(batch.nbytes for batch in pq.ParquetFile(stream).iter_batches())
    most = Bounds(3, manifest, size, size + 5, decoded)

    def read(bounds):
        with Unpacker(target, "file", bounds) as parts:
            return parts.read("a"), parts.read_table("t")

    content, found = read(most)
    assert (content, found.equals(table)) == (b"12345", True)
    for name, limit in vars(most).items():
        with pytest.raises(LimitError):
            read(replace(most, **{name: limit - 1}))


def test_a_part_larger_than_it_says_is_not_unpacked_whole(full, other):
    def change(parts, head):
        name, _ = about(parts)
        parts[name] = b" " * 50_000_000

    content = repacked(exported(full), change, keep_list=True)
    with pytest.raises(RankdashError, match="Nothing was imported"):
        bring(other, content)


def test_one_broken_data_set_keeps_the_good_ones_out(full, other, make_dataset):
    save(full, make_dataset("Second", salt="!"))

    def change(parts, head):
        name = [name for name in parts if name.endswith("qrels.parquet")][-1]
        parts[name] = b"nothing"

    with pytest.raises(FormatError):
        bring(other, repacked(exported(full), change))
    assert other.datasets() == []
    assert list((other.root / "datasets").iterdir()) == []


def test_a_full_disk_at_the_last_step_adds_nothing(full, other, monkeypatch):
    from rankdash.store.workspace_file import merge_rows

    def refuse(*_):
        raise StoreError("There is no room left.")

    monkeypatch.setitem(merge_rows.JOIN, "explanations", refuse)
    with pytest.raises(StoreError, match="no room"):
        bring(other, exported(full))
    assert (other.datasets(), other.runs()) == ([], [])
    assert list((other.root / "datasets").iterdir()) == []


def test_progress_is_told(full, other):
    told = []
    target = io.BytesIO()
    sharing.export(full, target, "1", progress=lambda *step: told.append(step))
    assert told == [(1, 2), (2, 2)]
    target.seek(0)
    told.clear()
    sharing.bring_in(other, target, "file", lambda *step: told.append(step))
    assert told == [(1, 2), (2, 2)]


IDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    queries=st.lists(IDS, min_size=1, max_size=4, unique=True),
    docs=st.lists(IDS, min_size=1, max_size=5, unique=True),
    texts=st.lists(st.none() | IDS, min_size=5, max_size=5),
    numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=5, max_size=5),
    ties=st.sampled_from(["stable", "trec"]),
)
def test_any_data_set_comes_back_as_it_was(tmp_path_factory, queries, docs, texts, numbers, ties):
    rows = [(query, doc) for query in queries for doc in docs]
    dataset = Dataset(
        "any",
        pd.DataFrame({"query_id": queries, "text": texts[: len(queries)]}),
        pd.DataFrame({"doc_id": docs, "title": "", "text": texts[: len(docs)]}),
        pd.DataFrame({"query_id": queries, "doc_id": docs[0], "label": numbers[: len(queries)]}),
        Ranking.from_columns(
            [query for query, _ in rows], [doc for _, doc in rows],
            [numbers[place % 5] for place in range(len(rows))], ties=ties,
        ),
    )  # fmt: skip
    ours = Workspace.open(tmp_path_factory.mktemp("ours"))
    theirs = Workspace.open(tmp_path_factory.mktemp("theirs"))
    save(ours, dataset)
    bring(theirs, exported(ours))
    same_workspace(ours, theirs)


def test_a_workspace_for_reading_takes_nothing_in_but_is_exported(full, other):
    showing = Workspace(full.root, read_only=True)
    content = exported(showing)
    bring(other, content)
    same_workspace(full, other)
    before = snapshot(full)
    with pytest.raises(StoreError, match="reading only"):
        bring(showing, content)
    assert snapshot(full) == before


def test_a_note_and_a_pin_that_differ_stay_and_are_reported(full, other, make_dataset, make_run):
    content = exported(full)
    bring(other, content)
    dataset = make_dataset("Shop")
    other.save_run(make_run(dataset, "mine", name="my own"))
    RunNotes(other).keep("run-1", "what I think")
    Pins(other).pin("mine")
    found = bring(other, content)
    assert RunNotes(other).of("run-1").text == "what I think"
    assert Pins(other).of(dataset.id) == "mine"
    assert [(each.code, each.params["name"]) for each in found.findings] == [
        ("archive.note", "a run"), ("archive.pin", "my own"),
    ]  # fmt: skip


def test_what_another_process_stores_during_an_import_stays_and_leaves_no_second_folder(
    full, other, make_dataset, make_run
):
    dataset = make_dataset("Theirs")

    def settle(_theirs, _ours):
        if not other.runs():
            other.save_dataset(dataset)
            other.save_run(make_run(dataset, name="their run"))
        return {}, []

    nothing = dict.fromkeys(("report", "explanation", "plan"), lambda _: None)
    judges = Judges(**nothing, settings=lambda own: (own, ()), settle=settle, shared=())
    found = take_in(other, io.BytesIO(exported(full)), "file", judges)
    assert not found.added["datasets"] and not found.added["runs"]
    assert ([row.name for row in other.datasets()], [row.name for row in other.runs()]) == (
        ["Theirs"], ["their run"],
    )  # fmt: skip
    for kind in ("datasets", "runs"):
        assert len(list((other.root / kind).iterdir())) == 1


def test_tables_are_packed_as_they_are_and_words_are_compressed(full):
    with zipfile.ZipFile(io.BytesIO(exported(full))) as read:
        kinds = {member.filename.endswith(".parquet"): member for member in read.infolist()}
    assert kinds[True].compress_type == zipfile.ZIP_STORED
    assert kinds[False].compress_type == zipfile.ZIP_DEFLATED


def test_names_and_tags_of_the_file_give_way_to_those_here_and_are_told(full, other):
    def twice(parts, _head):
        name, told = about(parts)
        told["notes"][0]["tags"] = ["Odd", "odd ", "退货"]
        parts[name] = json.dumps(told).encode()

    content = exported(full)
    bring(other, repacked(content, twice))
    (row,) = other.datasets()
    assert Notes(other).of(row.id, "二").tags == ("Odd", "退货")
    other.rename_run("run-1", "my run")
    other.rename_dataset(row.id, "my set")
    found = bring(other, repacked(content, twice))
    assert [(each.code, dict(each.params)) for each in found.findings] == [
        ("archive.name", {"theirs": "Shop", "ours": "my set"}),
        ("archive.name", {"theirs": "a run", "ours": "my run"}),
    ]
    assert (other.run("run-1").name, other.dataset(row.id).name) == ("my run", "my set")
    assert [each.pair for each in Corrections(other).all(row.id)] == [("7", "01"), ("007", "1")]


def test_what_was_corrected_last_is_in_force_where_a_log_is_taken_over(full, other):
    (row,) = full.datasets()
    for label in (2.0, 0.5):
        Corrections(full).correct(row.id, ("007", "1"), label, "Ann")
    bring(other, exported(full))
    assert Corrections(other).all(row.id)[0].label == 0.5
    # The pair that was withdrawn here stays so, and is no other than the one in the file.
    found = bring(other, exported(full))
    assert found.findings == [] and not found.added["corrections"]


def plan_of(workspace, dataset_id):
    """The plan with its pauses, and what was said since it began."""
    plans = LabelPlans(workspace)
    kept = plans.newest(dataset_id)
    log = Corrections(workspace).log(dataset_id, kept.revision)
    return replace(kept, revision=0), plans.resumed(kept.id), [
        (each.pair, each.label, each.who, each.made, each.withdrawn) for each in log
    ]  # fmt: skip


def test_a_labelling_plan_goes_along_with_what_was_said_since_it_began(full, other, make_dataset):
    (row,) = full.datasets()
    begun = LabelPlans(full).begin(row.id, PLAN, "Read *all*.")
    for label, who in ((1.0, "Ann"), (None, "Bo")):
        Corrections(full).correct(row.id, ("007", "1"), label, who)
    LabelPlans(full).resume(begun, "Ann")
    LabelNotes(full).keep(row.id, ("007", "1"), "Bo", "cut off?")
    # Here the numbers of the log are others.
    mine = make_dataset("Mine", salt="!")
    save(other, mine)
    for label in (0.0, 1.0, 2.0):
        Corrections(other).correct(mine.id, ("7", "1"), label, "Cy")
    bring(other, exported(full))
    assert LabelNotes(other).all(row.id) == LabelNotes(full).all(row.id)
    ours, theirs = plan_of(full, row.id), plan_of(other, row.id)
    assert ours == theirs
    assert [each[1:3] for each in theirs[2]] == [(1.0, "Ann"), (None, "Bo")]
    assert LabelPlans(other).newest(row.id).revision != LabelPlans(full).newest(row.id).revision
    # Once more changes nothing.
    assert bring(other, exported(full)).findings == []
    assert plan_of(other, row.id) == theirs


@pytest.mark.parametrize("lacking", [("reading", "measured", "calls"), ("reading", "calls")])
def test_a_run_of_which_less_is_known_goes_along(workspace, other, make_dataset, make_run, lacking):
    """As a ranking from a file, of which nothing was measured."""
    dataset = make_dataset("Shop")
    save(workspace, dataset)
    workspace.save_run(replace(make_run(dataset), **dict.fromkeys(lacking)))
    assert bring(other, exported(workspace)).added["runs"] == 1
    same_workspace(workspace, other)
    (row,) = other.runs()
    found = {name: getattr(other.run(row.id), name) is None for name in ("measured", *lacking)}
    assert found == {"measured": "measured" in lacking, "reading": True, "calls": True}


def test_a_plan_under_which_nobody_has_labelled_yet_goes_along(full, other):
    (row,) = full.datasets()
    LabelPlans(full).begin(row.id, PLAN, "Read.")
    assert bring(other, exported(full)).findings == []
    assert plan_of(other, row.id) == plan_of(full, row.id)
    assert plan_of(other, row.id)[2] == []


def test_a_plan_that_cannot_be_read_is_reported_and_its_labels_come_along(full, other):
    (row,) = full.datasets()
    LabelPlans(full).begin(row.id, {"seed": 3}, "")
    Corrections(full).correct(row.id, ("7", "1"), 2.0, "Ann")
    (finding,) = bring(other, exported(full)).findings
    assert finding.code == "archive.plan" and "systems" in finding.params["reason"]
    assert LabelPlans(other).newest(row.id) is None
    assert ("7", "1") in {each.pair for each in Corrections(other).all(row.id)}


def test_a_judge_gets_the_settings_that_the_file_lacks_and_loses_unknown_ones(full, other):
    def changed(parts, _head):
        name, told = about(parts)
        settings = told["judges"][0]["settings"]
        del settings["key_variable"], settings["repeats"]
        settings["unheard"] = "x"
        parts[name] = json.dumps(told).encode()

    found = bring(other, repacked(exported(full), changed))
    (finding,) = found.findings
    assert finding.code == "archive.judge_settings"
    assert dict(finding.params) == {"name": "Mine", "settings": "key_variable, repeats, unheard"}
    (judge,) = StoredJudges(other).rows()
    assert judge.settings == completed(SETTINGS, judge.settings)


def test_what_cannot_be_read_is_named_and_all_else_is_exported(full, other):
    with full.database.writing() as db:
        db.execute("UPDATE judges SET usage = '[' WHERE name = 'Mine'")
        db.execute("UPDATE notes SET tags = '{'")
    target = io.BytesIO()
    (finding,) = sharing.export(full, target, "1.2.3")
    assert (finding.code, dict(finding.params)) == (DAMAGED_JUDGE, {"name": "Shop: Mine"})
    assert [each.code for each in bring(other, target.getvalue()).findings] == ["archive.excluded"]
    (row,) = other.datasets()
    assert [(each.tags, each.text) for each in Notes(other).all(row.id)] == [((), "看一下")]
    assert StoredJudges(other).rows() == []


def test_a_plan_or_labels_of_ones_own_stay(full, tmp_path):
    (row,) = full.datasets()
    before = exported(full)
    LabelPlans(full).begin(row.id, PLAN, "")
    Corrections(full).correct(row.id, ("7", "1"), 2.0, "Ann")
    content = exported(full)
    for own in ("plan", "labels"):
        other = Workspace.open(tmp_path / own)
        bring(other, before)
        if own == "plan":
            LabelPlans(other).begin(row.id, PLAN | {"seed": 4}, "")
        found = bring(other, content)
        assert "archive.plan" in {each.code for each in found.findings}
        kept = LabelPlans(other).newest(row.id)
        assert (kept and kept.settings) == (PLAN | {"seed": 4} if own == "plan" else None)
        assert ("7", "1") in {each.pair for each in Corrections(other).all(row.id)}


def test_a_judge_as_it_should_be_is_taken_and_stays_what_it_is_here(full, other):
    bring(other, _about(exported(full), "datasets", judges=[JUDGE]))
    (row,) = StoredJudges(other).rows()
    assert (row.id, row.graded, row.total, row.can_resume) == ("j", 1, 1, False)
    again = _about(exported(full), "datasets", judges=[{**JUDGE, "pairs": []}])
    assert bring(other, again).added["judges"] == 0
    assert StoredJudges(other).row("j").total == 1


def test_keys_in_the_address_of_a_judge_stay_behind(full, other):
    bring(other, exported(full))
    (row,) = StoredJudges(other).rows()
    assert (row.name, row.settings["base_url"]) == ("Mine", "http://host/v1")
    assert (row.state, row.graded, row.failed, row.open) == ("cancelled", 1, 1, 1)
    assert StoredJudges(other).pending(row.id) == [("7", "1")]


def test_an_export_without_a_damaged_run_holds_the_rest_and_names_it(
    full, other, make_dataset, make_run
):
    [first] = full.runs()
    full.save_run(replace(make_run(full.dataset(first.dataset_id)), id="run-2", name="whole"))
    flip(full, f"runs/{first.id}-*/queries.parquet")
    target = io.BytesIO()
    [finding] = sharing.export(full, target, "1")
    assert finding.text == f"Shop: {first.name} is damaged and was not exported."
    assert finding.code == DAMAGED_RUN

    found = bring(other, target.getvalue())
    assert [row.name for row in other.runs()] == ["whole"]
    assert [each.text for each in found.findings] == [
        f"Shop: {first.name} was damaged where the file was written, and is not in it."
    ]
    assert found.added["notes"] == 1


def test_an_export_without_a_damaged_data_set_holds_the_others(full, other, make_dataset):
    damaged = make_dataset("second", salt="!")
    save(full, damaged)
    flip(full, f"datasets/{damaged.id}-*/documents.parquet")
    target = io.BytesIO()
    [finding] = sharing.export(full, target, "1")
    assert (finding.params, finding.code) == ({"name": "second"}, DAMAGED_DATASET)
    bring(other, target.getvalue())
    assert [row.name for row in other.datasets()] == ["Shop"]
    with pytest.raises(StoreError, match="changed since it was written"):
        exported(full, [damaged.id])


class Full(io.BytesIO):
    """A file on a disk that is full after so many bytes."""

    def __init__(self, room):
        super().__init__()
        self.room = room

    def write(self, content):
        if self.tell() + len(content) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(content)


@pytest.mark.parametrize("room", [0, 30, 1_000, 5_000])
def test_a_full_disk_is_one_error_and_none_comes_later(full, monkeypatch, room):
    later = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: later.append(str(told.exc_value)))
    target = Full(room)
    with pytest.raises(OSError, match="No space") as refused:
        sharing.export(full, target, "1.2.3")
    target.close()
    # What holds the frames of the error holds the archive.
    refused.value.with_traceback(None)
    del refused
    gc.collect()
    assert later == []
