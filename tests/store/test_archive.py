"""A workspace as one file: what comes out is what went in, and no broken file adds anything."""

import errno
import gc
import hashlib
import io
import json
import shutil
import sys
import zipfile
from collections.abc import Callable
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
from rankdash.store.workspace_file import merge_rows
from rankdash.store.workspace_file.archive import (
    DAMAGED_DATASET,
    DAMAGED_JUDGE,
    DAMAGED_RUN,
    without_paths,
)
from rankdash.store.workspace_file.import_workspace import Judges, take_in
from rankdash.store.workspace_file.workspace_zip import MANIFEST, Bounds, Packer, Unpacker
from rankdash.value.assumptions import Assumptions
from tests.store.builders import content_of, flip, grade, submit, submit_judge

PLAN = {"systems": ["a"], "metric": "dcg@10", "top": 3.0, "threshold": 1.0, "seed": 3}
EXPLAINED = Explanation(0.5, (), 5, 7).to_json()
QUESTION = Asked("run-1", "007", "1", "term")
CORRECTED = ("007", "1")


def save(workspace, dataset):
    return workspace.save_dataset(dataset, "upload", check(dataset, [], {}).to_json())


@pytest.fixture(scope="module")
def made(tmp_path_factory, make_dataset, make_run):
    """The folder of a workspace with something of everything that is shared, and of what is not."""
    workspace = Workspace(tmp_path_factory.mktemp("made") / "home")
    dataset = make_dataset("Shop")
    save(workspace, dataset)
    secrets = {"model": "/home/me/models/mini", "base_url": "http://me:pw@host/v1", "k1": 1.2}
    run = replace(make_run(dataset), settings=secrets)
    workspace.save_run(run)
    Notes(workspace).keep(dataset.id, "二", ["退货"], "看一下", "Ann")
    layer = Corrections(workspace)
    layer.correct(dataset.id, CORRECTED, 0.0, "Ann")
    layer.correct(dataset.id, ("007", "01"), 1.0, "Ann")
    layer.withdraw(dataset.id, [("007", "01")])
    layer.correct(dataset.id, ("7", "01"), None, "Ann")
    RunNotes(workspace).keep(run.id, "longer texts", "Ann")
    Pins(workspace).pin(run.id)
    owner, questions = Owner(), Explanations(workspace)
    questions.ask(QUESTION)
    questions.claim(owner)
    questions.finish(QUESTION.id, owner, "done", result=EXPLAINED)
    questions.ask(replace(QUESTION, doc_id="01"))
    scenarios = {"careful": Assumptions(elasticity=0.25)}
    workspace.set_setting("scenarios", sharing.write_scenarios(scenarios))
    workspace.set_setting("analyst", "Ann")
    judges, pairs = StoredJudges(workspace), [CORRECTED, ("7", "01"), ("7", "1")]
    address = completed(SETTINGS, {"base_url": "http://me:pw@host/v1", "top": 3})
    for name in ("Mine", "waits"):
        submit_judge(workspace, dataset.id, name, settings=address, pairs=pairs)
    judges.claim(owner)
    said = {"grade": 2.0, "reason": "看", "error": "", "kind": ""}
    judged = [grade(pairs[0]) | {"answers": json.dumps([said])}]
    judged += [grade(pairs[1], None, "e") | {"kind": "time_out"}]
    judges.keep("Mine", owner, judged, {"calls": 2, "billed": {"dollars": 0.5}})
    judges.finish("Mine", owner, "cancelled")
    submit(workspace, dataset.id, "waits")
    return workspace.root


@pytest.fixture
def full(made, tmp_path):
    return Workspace.open(shutil.copytree(made, tmp_path / "home"))


@pytest.fixture
def shop(full):
    """The id of its data set."""
    return full.datasets()[0].id


@pytest.fixture
def other(tmp_path):
    return Workspace.open(tmp_path / "other")


def exported(workspace, ids=None) -> bytes:
    target = io.BytesIO()
    sharing.export(workspace, target, "1.2.3", ids)
    return target.getvalue()


def bring(workspace, content: bytes):
    return sharing.bring_in(workspace, io.BytesIO(content), "shop.rankdash.zip")


def codes(found) -> list[str]:
    return [each.code for each in found.findings]


def plain(value):
    """Something that can be compared: of a ranking or a table all that it has."""
    if isinstance(value, Ranking):
        return plain(value.frame()), value.ties, np.array(value.given).tolist()
    if isinstance(value, pd.DataFrame):
        return value.dtypes.astype(str).to_dict(), value.to_json(double_precision=15)
    return value


def shared(home):
    """Everything of a workspace that a file of it has."""
    found = {}
    for row in home.datasets():
        data, judges = home.dataset(row.id), StoredJudges(home)
        stopped = [each for each in judges.rows(row.id) if not each.live]
        found[row.id] = (
            *map(plain, (data.name, data.queries, data.documents, data.qrels, data.candidates)),
            home.check_report(row.id),
            *(kind(home).all(row.id) for kind in (Notes, Corrections, LabelNotes, RunNotes)),
            Pins(home).of(row.id),
            *((replace(each, settings={}), plain(judges.grades(each.id))) for each in stopped),
        )
    for row in home.runs():
        run = home.run(row.id)
        read = run.reading and (run.reading.read.tolist(), run.reading.full.tolist())
        found[row.id] = (
            *(row.name, row.created, repr((row.p50_ms, row.p95_ms, run.load_ms)), run.depth),
            *map(plain, (run.queries, run.ranking, run.calls)),
            *(read, repr(run.measured)),
        )
    return found


def repacked(content: bytes, change: Callable, *, keep_list=False) -> bytes:
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
    return zipped({MANIFEST: json.dumps(head).encode(), **parts})


def zipped(parts: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as write:
        for name, part in parts.items():
            write.writestr(name, part)
    return target.getvalue()


def unzipped(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as read:
        return {name: read.read(name) for name in read.namelist()}


def retold(content: bytes, kind: str, change: Callable) -> bytes:
    """The file with a change made to what it says about a data set or a run."""

    def rewrite(parts, _head):
        name = named(parts, "about.json", kind)
        told = json.loads(parts[name])
        change(told)
        parts[name] = json.dumps(told).encode()

    return repacked(content, rewrite)


def about(content: bytes, kind: str, **fields) -> bytes:
    return retold(content, kind, lambda told: told.update(fields))


def named(parts, ending, beginning="") -> str:
    return next(each for each in parts if each.startswith(beginning) and each.endswith(ending))


def test_a_colleague_sees_the_same(full, other):
    content = exported(full)
    found = bring(other, content)
    assert shared(full) == shared(other)
    assert {name: n for name, n in found.added.items() if n} == {
        "datasets": 1, "runs": 1, "notes": 2, "corrections": 2, "explanations": 1, "settings": 1,
        "judges": 1,
    }  # fmt: skip
    assert found.findings == []
    assert sharing.read_scenarios(other.setting("scenarios"))["careful"].elasticity == 0.25
    row = Explanations(other).find(QUESTION)
    assert (row.state, row.result) == ("done", EXPLAINED)
    # Once more changes nothing, not even the file: but for when it was made.
    before = unzipped(exported(other))
    again = bring(other, content)
    assert not any(again.added.values()) and again.findings == []
    assert shared(full) == shared(other)
    after = unzipped(exported(other))
    heads = [json.loads(each.pop(MANIFEST))["parts"] for each in (before, after)]
    assert heads[0] == heads[1] and before == after


def test_a_file_of_an_older_version_is_read_with_what_it_has(full, shop, other, tmp_path):
    data = full.dataset(shop)
    tables = (data.queries, data.documents, data.qrels, data.candidates)
    first = Workspace(tmp_path / "named")
    save(first, Dataset("named", *tables, candidates_name="bm25 今天"))
    second, third = Workspace(tmp_path / "second"), Workspace(tmp_path / "third")
    bring(second, exported(first))
    assert second.dataset(shop).candidates_name == "bm25 今天"
    bring(third, retold(exported(first), "datasets", lambda told: told.pop("candidates_name")))
    assert third.dataset(shop).candidates_name == ""
    # It does not say who wrote a note.
    content = retold(exported(full), "datasets", lambda told: told["notes"][0].pop("who"))
    bring(other, retold(content, "runs", lambda told: told["note"].pop("who")))
    (note,) = Notes(other).all(shop)
    assert (note.text, note.who) == ("看一下", "")
    assert [each.who for each in RunNotes(other).all(shop).values()] == [""]
    (scenario,) = sharing.read_scenarios('{"old": {"share": 0.5}}').values()
    assert scenario.traffic_share == 0.5


def test_keys_paths_kept_scores_and_waiting_work_stay_behind(full, other):
    full.score_cache.clear()
    content = exported(full)
    parts = unzipped(content)
    assert not any("sqlite" in name for name in parts)
    for secret in (str(full.root), "/home/me", "me:pw"):
        assert secret.encode() not in b"".join(parts.values())
    bring(other, content)
    assert other.run("run-1").settings == {"model": "mini", "base_url": "http://host/v1", "k1": 1.2}
    assert Queue(other).rows() == []
    assert other.setting("analyst") is None
    assert Explanations(other).find(replace(QUESTION, doc_id="01")) is None
    (row,) = StoredJudges(other).rows()
    assert (row.name, row.settings["base_url"]) == ("Mine", "http://host/v1")
    assert (row.state, row.graded, row.failed, row.open) == ("cancelled", 1, 1, 1)
    assert StoredJudges(other).pending(row.id) == [("7", "1")]


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("/a/b/model", "model"), ("C:\\models\\mini", "mini"), ("~/x/y", "y"),
        ("org/model", "org/model"), ("https://k:s@h/v1", "https://h/v1"), (["/a/b", 3], ["b", 3]),
    ],
)  # fmt: skip
def test_what_tells_of_this_machine(value, kept):
    assert without_paths(value) == kept


def test_only_what_is_asked_for_is_exported(full, make_dataset, other):
    second = make_dataset("Second", salt="!")
    save(full, second)
    bring(other, exported(full, [second.id]))
    assert [row.name for row in other.datasets()] == ["Second"]
    with pytest.raises(StoreError, match="no data set"):
        exported(full, ["nowhere"])


def test_tables_are_packed_as_they_are_and_words_are_compressed(full):
    with zipfile.ZipFile(io.BytesIO(exported(full))) as read:
        kinds = {member.filename.endswith(".parquet"): member for member in read.infolist()}
    assert kinds[True].compress_type == zipfile.ZIP_STORED
    assert kinds[False].compress_type == zipfile.ZIP_DEFLATED


def test_progress_is_told(full, other):
    target = io.BytesIO()
    for work in (
        lambda tell: sharing.export(full, target, "1", progress=tell),
        lambda tell: sharing.bring_in(other, io.BytesIO(target.getvalue()), "file", tell),
    ):
        told = []
        work(lambda *step, told=told: told.append(step))
        assert told == [(1, 2), (2, 2)]


IDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    queries=st.lists(IDS, min_size=1, max_size=4, unique=True),
    docs=st.lists(IDS, min_size=1, max_size=5, unique=True),
    texts=st.lists(st.none() | IDS, min_size=5, max_size=5),
    numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=5, max_size=5),
    ties=st.sampled_from(["stable", "trec"]),
)
def test_any_data_set_comes_back_as_it_was(workspace, other, queries, docs, texts, numbers, ties):
    rows = [(query, doc) for query in queries for doc in docs]
    scores = [numbers[place % 5] for place in range(len(rows))]
    dataset = Dataset(
        "any",
        pd.DataFrame({"query_id": queries, "text": texts[: len(queries)]}),
        pd.DataFrame({"doc_id": docs, "title": "", "text": texts[: len(docs)]}),
        pd.DataFrame({"query_id": queries, "doc_id": docs[0], "label": numbers[: len(queries)]}),
        Ranking.from_columns(*zip(*rows, strict=True), scores, ties=ties),
    )
    save(workspace, dataset)
    bring(other, exported(workspace))
    assert other.dataset(dataset.id) == dataset
    assert shared(workspace) == shared(other)
    for each in (workspace, other):
        each.delete_dataset(dataset.id)


@pytest.mark.parametrize("lacking", [("reading", "measured", "calls"), ("reading", "calls")])
def test_a_run_of_which_less_is_known_goes_along(workspace, other, make_dataset, make_run, lacking):
    """As a ranking from a file, of which nothing was measured."""
    dataset = make_dataset("Shop")
    save(workspace, dataset)
    workspace.save_run(replace(make_run(dataset), **dict.fromkeys(lacking)))
    assert bring(other, exported(workspace)).added["runs"] == 1
    assert shared(workspace) == shared(other)
    run = other.run("run-1")
    known = {name for name in ("reading", "measured", "calls") if getattr(run, name) is not None}
    assert known == {"reading", "measured", "calls"} - {*lacking}


# What is here already stays.


def test_what_is_here_stays_and_is_reported(full, other, make_dataset, make_run):
    dataset = make_dataset("My name")
    save(other, dataset)
    mine = replace(make_run(dataset, name="mine"), reading=None)
    other.save_run(replace(mine, ranking=Ranking.from_lists([("7", ["1"], [9.0])])))
    Notes(other).keep(dataset.id, "二", [], "my own")
    Corrections(other).correct(dataset.id, CORRECTED, 2.0, "Bob")
    other.set_setting("scenarios", sharing.write_scenarios({"careful": Assumptions()}))
    found = bring(other, exported(full))
    assert [row.name for row in other.datasets()] == ["My name"]
    assert Notes(other).of(dataset.id, "二").text == "my own"
    kept = {each.pair: each.label for each in Corrections(other).all(dataset.id)}
    # The pair that nobody had corrected here is taken over.
    assert kept == {CORRECTED: 2.0, ("7", "01"): None}
    assert len(other.run("run-1").ranking) == 1
    assert sharing.read_scenarios(other.setting("scenarios"))["careful"].elasticity == 1.0
    assert RunNotes(other).all(dataset.id) == {}
    said = " ".join(finding.text for finding in found.findings)
    for word in ("is called My name here", "run a run is here with other", "note on query 二",
                 "label of document 1 for query 007", "scenario careful differs"):  # fmt: skip
        assert word in said
    assert len(found.findings) == 5


def test_what_differs_in_one_thing_alone_is_reported(full, shop, other, make_dataset):
    save(other, make_dataset("Shop"))
    Notes(other).keep(shop, "二", ["another"], "看一下")
    layer = Corrections(other)
    layer.correct(shop, ("7", "01"), None, "Bob")
    layer.withdraw(shop, [("7", "01")])
    layer.correct(shop, CORRECTED, 0.0, "Bob")
    found = bring(other, exported(full))
    assert codes(found) == ["archive.note", "archive.correction"]
    assert found.findings[1].params["document"] == "01"


def test_a_run_of_another_data_set_with_the_same_id_is_not_replaced(
    full, other, make_dataset, make_run
):
    dataset = make_dataset("Another", salt="!")
    save(other, dataset)
    other.save_run(make_run(dataset))
    assert codes(bring(other, exported(full))) == ["archive.run"]
    assert other.run("run-1").dataset_id == dataset.id


def test_names_a_note_and_a_pin_that_differ_stay_and_are_reported(
    full, shop, other, make_dataset, make_run
):
    tags = ["Odd", "odd ", "退货"]
    content = retold(exported(full), "datasets", lambda told: told["notes"][0].update(tags=tags))
    bring(other, content)
    assert Notes(other).of(shop, "二").tags == ("Odd", "退货")
    other.rename_run("run-1", "my run")
    other.rename_dataset(shop, "my set")
    other.save_run(make_run(make_dataset("Shop"), "mine", name="my own"))
    RunNotes(other).keep("run-1", "what I think")
    Pins(other).pin("mine")
    found = bring(other, content)
    names = [
        tuple(each.params.get(n) for n in ("theirs", "ours", "name")) for each in found.findings
    ]
    assert [*zip(codes(found), names, strict=True)] == [
        ("archive.name", ("Shop", "my set", None)),
        ("archive.name", ("a run", "my run", None)),
        ("archive.note", (None, None, "my run")),
        ("archive.pin", (None, None, "my own")),
    ]
    assert (other.run("run-1").name, other.dataset(shop).name) == ("my run", "my set")
    assert RunNotes(other).of("run-1").text == "what I think"
    assert Pins(other).of(shop) == "mine"
    assert [each.pair for each in Corrections(other).all(shop)] == [("7", "01"), CORRECTED]


def judges(**more) -> Judges:
    nothing = dict.fromkeys(("report", "explanation", "plan"), lambda _: None)
    usual = {"settings": lambda own: (own, ()), "settle": lambda _theirs, _ours: ({}, [])}
    return Judges(**nothing, **(usual | more), shared=())


def test_what_another_process_stores_during_an_import_stays_and_leaves_no_second_folder(
    full, other, make_dataset, make_run
):
    dataset = make_dataset("Theirs")

    def settle(_theirs, _ours):
        if not other.runs():
            other.save_dataset(dataset)
            other.save_run(make_run(dataset, name="their run"))
        return {}, []

    found = take_in(other, io.BytesIO(exported(full)), "file", judges(settle=settle))
    assert not found.added["datasets"] and not found.added["runs"]
    assert [row.name for row in (*other.datasets(), *other.runs())] == ["Theirs", "their run"]
    for kind in ("datasets", "runs"):
        assert len(list((other.root / kind).iterdir())) == 1


def test_what_was_corrected_last_is_in_force_where_a_log_is_taken_over(full, shop, other):
    for label in (2.0, 0.5):
        Corrections(full).correct(shop, CORRECTED, label, "Ann")
    bring(other, exported(full))
    assert Corrections(other).all(shop)[0].label == 0.5
    # The pair that was withdrawn here stays so, and is no other than the one in the file.
    found = bring(other, exported(full))
    assert found.findings == [] and not found.added["corrections"]


# Labelling plans and judges.


def plan_of(workspace, dataset_id):
    """The plan with its pauses, and what was said since it began."""
    plans = LabelPlans(workspace)
    kept = plans.newest(dataset_id)
    log = Corrections(workspace).log(dataset_id, kept.revision)
    said = [(each.pair, each.label, each.who, each.made, each.withdrawn) for each in log]
    return replace(kept, revision=0), plans.resumed(kept.id), said


@pytest.mark.parametrize("labelled", [True, False])
def test_a_labelling_plan_goes_along_with_what_was_said_since_it_began(
    full, shop, other, make_dataset, labelled
):
    begun = LabelPlans(full).begin(shop, PLAN, "Read *all*.")
    said = ((1.0, "Ann"), (None, "Bo")) if labelled else ()
    for label, who in said:
        Corrections(full).correct(shop, CORRECTED, label, who)
    LabelPlans(full).resume(begun, "Ann")
    LabelNotes(full).keep(shop, CORRECTED, "Bo", "cut off?")
    # Here the numbers of the log are others.
    mine = make_dataset("Mine", salt="!")
    save(other, mine)
    for label in (0.0, 1.0, 2.0):
        Corrections(other).correct(mine.id, ("7", "1"), label, "Cy")
    for _again in range(2):
        assert bring(other, exported(full)).findings == []
        assert LabelNotes(other).all(shop) == LabelNotes(full).all(shop) != {}
        assert plan_of(full, shop) == plan_of(other, shop)
        assert [each[1:3] for each in plan_of(other, shop)[2]] == [*said]
    assert LabelPlans(other).newest(shop).revision != LabelPlans(full).newest(shop).revision


def test_a_plan_that_cannot_be_read_is_reported_and_its_labels_come_along(full, shop, other):
    LabelPlans(full).begin(shop, {"seed": 3}, "")
    Corrections(full).correct(shop, ("7", "1"), 2.0, "Ann")
    (finding,) = bring(other, exported(full)).findings
    assert finding.code == "archive.plan" and "systems" in finding.params["reason"]
    assert LabelPlans(other).newest(shop) is None
    assert ("7", "1") in {each.pair for each in Corrections(other).all(shop)}


@pytest.mark.parametrize("own", [PLAN | {"seed": 4}, None])
def test_a_plan_or_labels_of_ones_own_stay(full, shop, other, own):
    bring(other, exported(full))
    LabelPlans(full).begin(shop, PLAN, "")
    Corrections(full).correct(shop, ("7", "1"), 2.0, "Ann")
    if own:
        LabelPlans(other).begin(shop, own, "")
    assert "archive.plan" in codes(bring(other, exported(full)))
    kept = LabelPlans(other).newest(shop)
    assert (kept and kept.settings) == own
    assert ("7", "1") in {each.pair for each in Corrections(other).all(shop)}


JUDGED = {
    "query_id": "7", "doc_id": "1", "grade": 3.0, "reason": "r", "error": "", "kind": "",
    "answers": [],
}  # fmt: skip
JUDGE = {
    "id": "j", "name": "n", "model": "m", "template": "t", "settings": {}, "top": 3,
    "systems": ["a"], "depth": 1, "state": "done", "usage": {}, "unsettled": 0,
    "created": "2026-01-01", "started": None, "finished": None, "pairs": [JUDGED],
}  # fmt: skip


def test_a_judge_as_it_should_be_is_taken_and_stays_what_it_is_here(full, other):
    bring(other, about(exported(full), "datasets", judges=[JUDGE]))
    (row,) = StoredJudges(other).rows()
    assert (row.id, row.graded, row.total, row.can_resume) == ("j", 1, 1, False)
    again = about(exported(full), "datasets", judges=[{**JUDGE, "pairs": []}])
    assert bring(other, again).added["judges"] == 0
    assert StoredJudges(other).row("j").total == 1


def test_a_judge_gets_the_settings_that_the_file_lacks_and_loses_unknown_ones(full, other):
    def change(told):
        given = told["judges"][0]["settings"]
        del given["key_variable"], given["repeats"]
        given["unheard"] = "x"

    (finding,) = bring(other, retold(exported(full), "datasets", change)).findings
    assert finding.code == "archive.judge_settings"
    assert dict(finding.params) == {"name": "Mine", "settings": "key_variable, repeats, unheard"}
    (judge,) = StoredJudges(other).rows()
    assert judge.settings == completed(SETTINGS, judge.settings)


# What is damaged here.


def harm_judge(full, shop):
    with full.database.writing() as db:
        db.execute("UPDATE judges SET usage = '[' WHERE name = 'Mine'")
        db.execute("UPDATE notes SET tags = '{'")


def harm_run(full, shop):
    (file,) = full.root.glob("runs/run-1-*/queries.parquet")
    flip(file, 9)


def harm_dataset(full, shop):
    (file,) = full.root.glob(f"datasets/{shop}-*/documents.parquet")
    flip(file, 9)


@pytest.mark.parametrize(
    ("harm", "code", "name"),
    [
        (harm_judge, DAMAGED_JUDGE, "Shop: Mine"),
        (harm_run, DAMAGED_RUN, "Shop: a run"),
        (harm_dataset, DAMAGED_DATASET, "Shop"),
    ],
)
def test_an_export_without_what_is_damaged_has_the_rest_and_names_it(
    full, shop, other, make_dataset, make_run, harm, code, name
):
    save(full, make_dataset("whole", salt="!"))
    full.save_run(make_run(full.dataset(shop), "run-2", name="whole"))
    harm(full, shop)
    target = io.BytesIO()
    [finding] = sharing.export(full, target, "1")
    assert (finding.code, finding.text) == (code, f"{name} is damaged and was not exported.")
    found = bring(other, target.getvalue())
    assert [each.text for each in found.findings] == [
        f"{name} was damaged where the file was written, and is not in it."
    ]
    sets = ["Shop", "whole"] if harm is not harm_dataset else ["whole"]
    assert sorted(row.name for row in other.datasets()) == sets
    runs = {harm_judge: ["a run", "whole"], harm_run: ["whole"], harm_dataset: []}
    assert sorted(row.name for row in other.runs()) == runs[harm]
    assert [row.name for row in StoredJudges(other).rows()] == ["Mine"] * (harm is harm_run)
    if harm is harm_judge:
        # Of the note the tags cannot be read.
        assert [(each.tags, each.text) for each in Notes(other).all(shop)] == [((), "看一下")]
    if harm is harm_dataset:
        with pytest.raises(StoreError, match="changed since it was written"):
            exported(full, [shop])


class Full(io.BytesIO):
    """A file on a disk that is full after so many bytes."""

    room = 0

    def write(self, content):
        if self.tell() + len(content) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(content)


@pytest.mark.parametrize("room", [0, 30, 1_000, 5_000])
def test_a_full_disk_is_one_error_and_none_comes_later(full, monkeypatch, room):
    later = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: later.append(str(told.exc_value)))
    target = Full()
    target.room = room
    with pytest.raises(OSError, match="No space") as refused:
        sharing.export(full, target, "1.2.3")
    target.close()
    # What holds the frames of the error holds the archive.
    refused.value.with_traceback(None)
    del refused
    gc.collect()
    assert later == []


# Broken files.


def change_table(content, ending, column=None, values=None, *, table=None):
    """The file with a column of a table replaced, or the table."""

    def rewrite(parts, _head):
        name = named(parts, ending)
        found, target = pq.read_table(io.BytesIO(parts[name])), io.BytesIO()
        if column is not None:
            place = found.column_names.index(column)
            found = found.set_column(place, column, pa.array(values))
        pq.write_table(found if table is None else table, target)
        parts[name] = target.getvalue()

    return repacked(content, rewrite)


def twice(content):
    target = io.BytesIO(content)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(target, "a") as more:
        name = named(more.namelist(), "qrels.parquet")
        # The same content too: which of them is meant is not for us to say.
        more.writestr(name, more.read(name))
    return target.getvalue()


def renamed(head, parts, new):
    """Another id for the data set, under which its parts are too."""
    (old,) = head["datasets"]
    head["datasets"] = {new: head["datasets"][old]}
    for name in [name for name in parts if old in name]:
        parts[name.replace(old, new)] = parts.pop(name)


def part(ending, content):
    return lambda parts, _head: parts.update({named(parts, ending): content})


def more(name):
    return lambda parts, _head: parts.update({name: b"x"})


def without(ending):
    return lambda parts, _head: parts.pop(named(parts, ending))


SCENARIO = b'{"settings": {"scenarios": "{\\"a\\": {\\"no\\": 1}}"}}'
PARTS = {
    "a part that is missing": without("qrels.parquet"),
    "a path out of the folder": more("../../evil"),
    "an absolute path": more("/etc/evil"),
    "an id that is a path": lambda _, head: head.update(
        datasets={"../x": next(iter(head["datasets"].values()))}
    ),
    "content that is not its id": lambda parts, head: renamed(head, parts, "0" * 16),
    "another format": lambda _, head: head.update(format="something"),
    "a run listed twice": lambda _, head: next(iter(head["datasets"].values())).append("run-1"),
    "a table that is none": part("qrels.parquet", b"PAR1 not really PAR1"),
    "settings that are none": part("settings.json", SCENARIO),
}
# With the list as it was.
LISTED = {
    "a wrong hash": lambda parts, _: parts.update(
        {(name := named(parts, "about.json", "datasets")): parts[name].replace(b"Shop", b"Shed")}
    ),
    "a part that is listed and missing": without("about.json"),
    "a part that is not listed": more("more.txt"),
    "a list that is none": lambda _, head: head.update(parts=[1]),
    "a size that is none": lambda _, head: next(iter(head["parts"].values())).update(bytes="many"),
    "a part larger than it says": part("about.json", b" " * 50_000_000),
}
FILES = {
    "no list": lambda _content: zipped({"anything": b"else"}),
    "truncated": lambda content: content[: len(content) // 2],
    "no zip": lambda _content: b"query_id,doc_id\n",
    "empty": lambda _content: b"",
    "two parts of one name": twice,
    **{
        name: lambda content, given=given: change_table(content, *given)
        for name, given in {
            "negative codes": ("ranking.parquet", "document", np.full(4, -1, dtype=np.int32)),
            "scores out of order": ("ranking.parquet", "score", [1.0, 2.0, 3.0, 4.0]),
            "hidden ties": ("ranking-queries.parquet", "tied", [False, False]),
            "a foreign document": (
                "ranking-documents.parquet", "doc_id", ["01", "1", "elsewhere"],
            ),
            "an unknown state": (
                "runs/run-1/queries.parquet", "state", ["done", "great", "failed"],
            ),
        }.items()
    },
    "nonsense that was measured": lambda content: change_table(
        content, "measured.parquet",
        table=pa.table({"measured": ['{"pairs": "many", "throughput": []}']}),
    ),
}  # fmt: skip


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
    "[]",
    report(rankings=[]),
    report(queries="many"),
    report(label_histogram=[{"low": "a", "high": 1, "count": 1}]),
    *(
        report(finding=wrong)
        for wrong in (
            {"template": "{lacking} rows."},
            *({"template": each} for each in ("{n:>1000000000}", "{n.__class__}")),
            *({"severity": "fatal"}, {"examples": [1]}),
        )
    ),
]  # fmt: skip
NOTE = {"query_id": "7", "tags": [], "note": "y", "changed": "2026-01-01"}
LABEL = {"query_id": "7", "doc_id": "1", "label": 1.0, "withdrawn": 0, "who": "",
         "made": "2026-01-01"}  # fmt: skip
EXPLAINS = {"query_id": "7", "doc_id": "1", "level": "term", "result": EXPLAINED,
            "finished": "2026-01-01"}  # fmt: skip
TEXTS = '{"score": "high", "stages": [], "read": 1, "full": 1}'
# What the file says about a data set or a run: field → what it cannot be.
SAID = {
    "datasets": [
        *(("report", text) for text in REPORTS),
        # Of queries and documents that the data set does not have.
        ("notes", [NOTE | {"query_id": "x"}]),
        ("corrections", [LABEL | {"doc_id": "x"}]),
        ("judges", [JUDGE | {"pairs": [JUDGED | {"doc_id": "x"}]}]),
        ("label_notes", [{"query_id": "7", "doc_id": "x", "who": "", "note": "y"}]),
    ],
    "runs": [
        ("name", 3),
        *(("explanations", [EXPLAINS | each])
          for each in ({"doc_id": "x"}, {"result": "{}"}, {"result": TEXTS})),
    ],
}  # fmt: skip
BROKEN = {
    **{name: lambda content, to=to: repacked(content, to) for name, to in PARTS.items()},
    **{
        name: lambda content, to=to: repacked(content, to, keep_list=True)
        for name, to in LISTED.items()
    },
    **FILES,
    **{
        f"{kind} {place} {name}": lambda content, at=(kind, name, wrong): about(
            content, at[0], **{at[1]: at[2]}
        )
        for kind, fields in SAID.items()
        for place, (name, wrong) in enumerate(fields)
    },
}


@pytest.fixture(scope="module")
def content(made, tmp_path_factory):
    copy = shutil.copytree(made, tmp_path_factory.mktemp("exported") / "home")
    return exported(Workspace.open(copy))


@pytest.fixture(scope="module")
def mine(tmp_path_factory, make_dataset):
    """A workspace that no import has changed."""
    workspace = Workspace.open(tmp_path_factory.mktemp("mine"))
    save(workspace, make_dataset("Mine", salt="!"))
    return workspace


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_refused_in_words_and_adds_nothing(content, mine, kind):
    before = content_of(mine.root)
    with pytest.raises(RankdashError, match="Nothing was imported") as refused:
        bring(mine, BROKEN[kind](content))
    if kind != "a part larger than it says":
        assert isinstance(refused.value, FormatError)
        assert refused.value.file == "shop.rankdash.zip"
    assert refused.value.remedy
    assert content_of(mine.root) == before
    assert not (mine.root / "runs").exists() or list((mine.root / "runs").iterdir()) == []


def test_a_refusal_names_the_part_and_the_place_in_it_in_both_languages(content, other):
    with pytest.raises(FormatError, match=r"datasets/\w+/about\.json .*\$\.name") as refused:
        bring(other, about(content, "datasets", name=3))
    with speaking("zh"):
        words = error_text(refused.value)
    assert "about.json 不符合 rankdash 写出的格式" in words
    assert "请重新复制或导出" in words
    newer = repacked(content, lambda _, head: head.update(version=2, rankdash="9.9"))
    with pytest.raises(FormatError, match=r"newer rankdash \(9\.9\).*Update"):
        bring(other, newer)


BOUNDS = {"parts": 3, "manifest": 10, "part": 10, "together": 1_000, "decoded": 10}


@pytest.mark.parametrize("name", BOUNDS)
def test_what_is_too_large_is_refused(content, other, name):
    bounds = Bounds(**{name: BOUNDS[name]})
    with pytest.raises(LimitError, match="Nothing was imported"):
        take_in(other, io.BytesIO(content), "big", judges(), bounds=bounds)
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


@pytest.mark.parametrize("kind", ["a broken data set among good ones", "a full disk at the end"])
def test_all_is_added_or_nothing(full, other, make_dataset, monkeypatch, kind):
    save(full, make_dataset("Second", salt="!"))
    content = exported(full)

    def refuse(*_):
        raise StoreError("There is no room left.")

    def last(parts, _head):
        parts[[name for name in parts if name.endswith("qrels.parquet")][-1]] = b"nothing"

    if kind == "a full disk at the end":
        monkeypatch.setitem(merge_rows.JOIN, "explanations", refuse)
    else:
        content = repacked(content, last)
    with pytest.raises((FormatError, StoreError)):
        bring(other, content)
    assert (other.datasets(), other.runs()) == ([], [])
    assert list((other.root / "datasets").iterdir()) == []


def test_a_workspace_for_reading_takes_nothing_in_but_is_exported(full, other):
    showing = Workspace(full.root, read_only=True)
    content = exported(showing)
    bring(other, content)
    assert shared(full) == shared(other)
    before = content_of(full.root)
    with pytest.raises(StoreError, match="reading only"):
        bring(showing, content)
    assert content_of(full.root) == before
