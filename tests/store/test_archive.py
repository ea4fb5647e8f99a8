"""A workspace as one file: the import equals the export, and a broken file adds nothing."""

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
from functools import partial, reduce
from operator import getitem
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankdash.core.base.errors import LimitError, RankdashError, StoreError
from rankdash.core.base.i18n import error_text, speaking
from rankdash.core.base.rules import completed
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.explanation import Explanation
from rankdash.core.data.ranking import Ranking
from rankdash.core.readers.checks.check import check
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.rerankers.remote.chat import JUDGE_SETTINGS
from rankdash.core.value import assumptions
from rankdash.core.value.assumptions import Assumptions
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.core.workspace.jobs.leases import ExplanationRequest, Explanations
from rankdash.core.workspace.jobs.queue import Queue
from rankdash.core.workspace.notes import (
    Corrections,
    LabelNotes,
    LabelPlans,
    Notes,
    Pins,
    RunNotes,
)
from rankdash.core.workspace.workspace_file import archive, import_workspace
from rankdash.core.workspace.workspace_file.archive import MANIFEST, Bounds, Packer, Unpacker
from tests.approved import table
from tests.readers.reading import zipped
from tests.store import builders

PLAN = {"systems": ["a"], "metric": "dcg@10", "top": 3.0, "threshold": 1.0, "seed": 3}
EXPLAINED = Explanation(0.5, (), 5, 7).to_json()
QUESTION = ExplanationRequest("run-1", "007", "1", "term")
CORRECTED = ("007", "1")
OWN_SETTINGS = {
    "base_url": "http://me:pw@host/v1", "model": "/home/me/models/mini",
    "second": "C:\\models\\maxi", "third": "~/x/y", "fourth": "org/model", "k1": 1.2,
    "several": ["/a/b", 3],
}  # fmt: skip
SHARED_SETTINGS = OWN_SETTINGS | {
    "base_url": "http://host/v1", "model": "mini", "second": "maxi", "third": "y",
    "several": ["b", 3],
}  # fmt: skip


def save(workspace, dataset):
    return workspace.save_dataset(dataset, "upload", check(dataset, [], {}).to_json())


@pytest.fixture(scope="module")
def made(tmp_path_factory, make_dataset, make_run):
    """The folder of a workspace with each kind of shared data, and with data that is not shared."""
    workspace = Workspace(tmp_path_factory.mktemp("made") / "home")
    plain = make_dataset("Shop")
    tables = (plain.queries, plain.documents, plain.qrels, plain.candidates)
    dataset = Dataset("Shop", *tables, first_stage="bm25", candidates_name="bm25 今天")
    save(workspace, dataset)
    run = replace(make_run(dataset), settings=OWN_SETTINGS)
    workspace.save_run(run)
    Notes(workspace).store(dataset.id, "二", ["退货"], "看一下", "Ann")
    LabelNotes(workspace).store(dataset.id, CORRECTED, "Bo", "cut off?")
    layer = Corrections(workspace)
    layer.correct(dataset.id, CORRECTED, 0.0, "Ann")
    layer.correct(dataset.id, ("007", "01"), 1.0, "Ann")
    layer.withdraw(dataset.id, [("007", "01")])
    layer.correct(dataset.id, ("7", "01"), None, "Ann")
    RunNotes(workspace).store(run.id, "longer texts", "Ann")
    Pins(workspace).pin(run.id)
    builders.explain(workspace, QUESTION, result=EXPLAINED)
    Explanations(workspace).ask(replace(QUESTION, doc_id="01"))
    scenarios = {"careful": Assumptions(elasticity=0.25)}
    workspace.set_setting("scenarios", assumptions.write_scenarios(scenarios))
    workspace.set_setting("analyst", "Ann")
    address = completed(JUDGE_SETTINGS, {"base_url": "http://me:pw@host/v1", "top": 3})
    asked = {"settings": address, "pairs": [CORRECTED, ("7", "01"), ("7", "1")]}
    said = {"grade": 2.0, "reason": "看", "error": "", "kind": ""}
    judged = [builders.grade(CORRECTED) | {"answers": json.dumps([said])}]
    judged += [builders.grade(("7", "01"), None, "e") | {"kind": "time_out"}]
    usage = {"calls": 2, "billed": {"dollars": 0.5}}
    builders.judge(workspace, dataset.id, "Mine", judged, usage, **asked)
    builders.submit_judge(workspace, dataset.id, "waits", **asked)
    builders.submit(workspace, dataset.id, "waits")
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
    archive.export(workspace, target, "1.2.3", ids)
    return target.getvalue()


def bring(workspace, content: bytes):
    return import_workspace.bring_in(workspace, io.BytesIO(content), "shop.rankdash.zip")


def shared(home):
    return builders.everything(home, own=False)


def repacked(content: bytes, change: Callable, keep_list=False) -> bytes:
    """Return the file with `change` made to its parts (name → bytes); update the list of parts
    unless `keep_list`."""
    parts = unzipped(content)
    head = json.loads(parts.pop(MANIFEST))
    change(parts, head)
    if not keep_list:
        head["parts"] = {
            name: {"bytes": len(part), "sha256": hashlib.sha256(part).hexdigest()}
            for name, part in parts.items()
        }
    return zipped({MANIFEST: json.dumps(head).encode(), **parts})


def unzipped(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as read:
        return {name: read.read(name) for name in read.namelist()}


def retold(content: bytes, kind: str, change: Callable) -> bytes:
    """Return the file with a change of the fields of a data set or a run."""

    def rewrite(parts, _head):
        name = named(parts, "about.json", kind)
        told = json.loads(parts[name])
        change(told)
        parts[name] = json.dumps(told).encode()

    return repacked(content, rewrite)


def told(kind: str, *path, **fields) -> Callable[[bytes], bytes]:
    """Return a function that changes fields of a data set or a run, or of a row there."""

    def change(about):
        reduce(getitem, path, about).update(fields)

    return lambda content: retold(content, kind, change)


def named(parts, ending, beginning="") -> str:
    return next(each for each in parts if each.startswith(beginning) and each.endswith(ending))


def test_a_colleague_sees_the_same(full, shop, other, make_run):
    # Like a ranking from a file without measurements, and runs of older versions.
    parts = ("reading", "measured", "calls")
    for number, lacking in enumerate((parts, *((each,) for each in parts))):
        run = make_run(full.dataset(shop), f"bare-{number}")
        full.save_run(replace(run, **dict.fromkeys(lacking)))
    content = exported(full)
    found = bring(other, content)
    assert shared(full) == shared(other)
    assert {name: n for name, n in found.added.items() if n} == {
        "datasets": 1, "runs": 5, "notes": 2, "corrections": 2, "explanations": 1, "settings": 1,
        "judges": 1,
    }  # fmt: skip
    assert found.findings == []
    assert assumptions.read_scenarios(other.setting("scenarios"))["careful"].elasticity == 0.25
    row = Explanations(other).find(QUESTION)
    assert (row.state, row.result) == ("done", EXPLAINED)
    # A second import changes nothing; the export differs only in its time.
    before = unzipped(exported(other))
    again = bring(other, content)
    assert not any(again.added.values()) and again.findings == []
    assert shared(full) == shared(other)
    after = unzipped(exported(other))
    heads = [json.loads(each.pop(MANIFEST))["parts"] for each in (before, after)]
    assert heads[0] == heads[1] and before == after


def test_latencies_of_a_first_stage_go_along(tmp_path, other, make_dataset):
    data = make_dataset()
    rows = run_from_ranking("first", data.id, data.candidates, "a").queries
    data.timings = rows.assign(latency_ms=np.arange(len(rows)) + 1.5)
    timed = Workspace.open(tmp_path / "timed")
    timed.save_dataset(data, report_json=check(data, (), {}).to_json())
    bring(other, exported(timed))
    pd.testing.assert_frame_equal(other.dataset(data.id).timings, data.timings)


def test_keys_paths_kept_scores_and_waiting_work_stay_behind(full, other):
    full.score_cache.clear()
    content = exported(full)
    parts = unzipped(content)
    assert not any("sqlite" in name for name in parts)
    for secret in (str(full.root), "/home/me", "me:pw"):
        assert secret.encode() not in b"".join(parts.values())
    bring(other, content)
    assert other.run("run-1").settings == SHARED_SETTINGS
    assert Queue(other).rows() == []
    assert other.setting("analyst") is None
    assert Explanations(other).find(replace(QUESTION, doc_id="01")) is None
    (row,) = StoredJudges(other).rows()
    assert (row.name, row.settings["base_url"]) == ("Mine", "http://host/v1")
    assert (row.state, row.graded, row.failed, row.open) == ("cancelled", 1, 1, 1)
    assert StoredJudges(other).pending(row.id) == [("7", "1")]


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
        lambda tell: archive.export(full, target, "1", progress=tell),
        lambda tell: import_workspace.bring_in(other, io.BytesIO(target.getvalue()), "file", tell),
    ):
        told = []
        work(lambda *step, told=told: told.append(step))
        assert told == [(1, 2), (2, 2)]


# Existing data is not replaced.


class Two(NamedTuple):
    """The exported workspace, the importing workspace, and functions that make more data."""

    full: Workspace
    home: Workspace
    shop: str
    dataset: Callable
    run: Callable


def of_ones_own(two):
    """The user's data set, run, note, label and scenario stay."""
    dataset = two.dataset("My name")
    save(two.home, dataset)
    mine = replace(two.run(dataset, name="mine"), reading=None)
    two.home.save_run(replace(mine, ranking=Ranking.from_lists([("7", ["1"], [9.0])])))
    Notes(two.home).store(dataset.id, "二", [], "my own")
    Corrections(two.home).correct(dataset.id, CORRECTED, 2.0, "Bob")
    two.home.set_setting("scenarios", assumptions.write_scenarios({"careful": Assumptions()}))


def one_thing_alone(two):
    """A tag and a withdrawn label differ; different authors of an equal value do not count."""
    save(two.home, two.dataset("Shop"))
    Notes(two.home).store(two.shop, "二", ["another"], "看一下")
    layer = Corrections(two.home)
    layer.correct(two.shop, ("7", "01"), None, "Bob")
    layer.withdraw(two.shop, [("7", "01")])
    layer.correct(two.shop, CORRECTED, 0.0, "Bob")


def elsewhere(two):
    """A run of another data set with the same id is not replaced."""
    dataset = two.dataset("Another", salt="!")
    save(two.home, dataset)
    two.home.save_run(two.run(dataset))


def renamed(two):
    """Names, a note on a run and a pin that differ stay; equal tags of the file are merged."""
    tags = ["Odd", "odd ", "退货"]
    content = told("datasets", "notes", 0, tags=tags)(exported(two.full))
    bring(two.home, content)
    two.home.rename_run("run-1", "my run")
    two.home.rename_dataset(two.shop, "my set")
    two.home.save_run(two.run(two.dataset("Shop"), "mine", name="my own"))
    RunNotes(two.home).store("run-1", "what I think")
    Pins(two.home).pin("mine")
    return content


def corrected_again(two):
    """The last label of an imported log is in force; a second import adds nothing."""
    for label in (2.0, 0.5):
        Corrections(two.full).correct(two.shop, CORRECTED, label, "Ann")
    bring(two.home, exported(two.full))


def older(two):
    """An older version stored neither the name of a first stage nor the author of a note."""
    content = retold(exported(two.full), "runs", lambda told: told["note"].pop("who"))

    def without(told):
        del told["candidates_name"], told["notes"][0]["who"]

    return retold(content, "datasets", without)


def own_plan(two, own=PLAN | {"seed": 4}):
    """The user's plan stays, and the file's labels are added."""
    bring(two.home, exported(two.full))
    LabelPlans(two.full).begin(two.shop, PLAN, "")
    Corrections(two.full).correct(two.shop, ("7", "1"), 2.0, "Ann")
    if own:
        LabelPlans(two.home).begin(two.shop, own, "")


def own_labels(two):
    """If there are labels already, no plan is added."""
    own_plan(two, None)


def unreadable_plan(two):
    """A plan that cannot be read is omitted, and its labels are added."""
    LabelPlans(two.full).begin(two.shop, {"seed": 3}, "")
    Corrections(two.full).correct(two.shop, ("7", "1"), 2.0, "Ann")


def known_judge(two):
    """An existing judge does not change."""
    content = exported(two.full)
    bring(two.home, content)
    return told("datasets", "judges", 0, pairs=[], name="n")(content)


def other_settings(two):
    """A judge gets the settings that the file lacks, and loses unknown ones."""

    def change(told):
        given = told["judges"][0]["settings"]
        del given["key_variable"], given["repeats"]
        given["unheard"] = "x"

    return retold(exported(two.full), "datasets", change)


def damaged(two, file=""):
    """Add an intact data set and an intact run to the damaged data."""
    save(two.full, two.dataset("whole", salt="!"))
    two.full.save_run(two.run(two.full.dataset(two.shop), "run-2", name="whole"))
    if file:
        (place,) = two.full.root.glob(file)
        builders.flip(place, 9)


def damaged_judge(two):
    """Unreadable parts of a judge and of a note are not exported."""
    damaged(two)
    with two.full.database.writing() as db:
        db.execute("UPDATE judges SET usage = '[' WHERE name = 'Mine'")
        db.execute("UPDATE notes SET tags = '{'")


def damaged_run(two):
    """A damaged run is not exported."""
    damaged(two, "runs/run-1-*/queries.parquet")


def damaged_dataset(two):
    """A damaged data set is not exported, nor are its runs; its own export is refused."""
    damaged(two, f"datasets/{two.shop}-*/documents.parquet")
    with pytest.raises(StoreError, match="changed since it was written"):
        exported(two.full, [two.shop])


def listed(home: Workspace) -> str:
    """Return the possible differences between a workspace and a file, one per line."""
    runs = [(each.id, each.name, len(home.run(each.id).ranking)) for each in home.runs()]
    lines = [f"runs {runs}"]
    scenarios = assumptions.read_scenarios(home.setting("scenarios") or "{}").values()
    lines.append(f"elasticity {[each.elasticity for each in scenarios]}")
    for row in home.datasets():
        plan = LabelPlans(home).newest(row.id)
        lines += [
            f"data set {row.name!r}, {home.dataset(row.id).candidates_name!r}, pin "
            f"{Pins(home).of(row.id)}, plan {plan and sorted(plan.settings.items())}",
            *(f"{each.query_id}: {each.tags} {each.text!r} {each.who!r}"
              for each in Notes(home).all(row.id)),
            *(f"{each.pair}: {each.label} {each.who!r}" for each in Corrections(home).all(row.id)),
            *(f"{key}: {each.text!r} {each.who!r}"
              for key, each in sorted(RunNotes(home).all(row.id).items())),
            *(f"judge {each.name!r}: {each.graded} of {each.total}, {each.state}, "
              f"{'can' if each.can_resume else 'cannot'} be resumed, {len(each.settings)} settings"
              for each in StoredJudges(home).rows(row.id)),
        ]  # fmt: skip
    return "\n".join(lines)


CASES = (
    *(of_ones_own, one_thing_alone, elsewhere, renamed, corrected_again, older),
    *(own_plan, own_labels, unreadable_plan, known_judge, other_settings),
    *(damaged_judge, damaged_run, damaged_dataset),
)


def test_what_is_here_stays_and_what_differs_is_reported(
    made, tmp_path, make_dataset, make_run, approved
):
    said = []
    for case in CASES:
        place = tmp_path / case.__name__
        full = Workspace.open(shutil.copytree(made, place / "full"))
        home = Workspace.open(place / "home")
        content = case(Two(full, home, full.datasets()[0].id, make_dataset, make_run))
        target = io.BytesIO(content or b"")
        left_out = [] if content else archive.export(full, target, "1")
        found = bring(home, target.getvalue())
        added = ", ".join(f"{kind} {count}" for kind, count in found.added.items() if count)
        findings = [f"{each.code}: {each.text}" for each in (*left_out, *found.findings)]
        said.append((case.__doc__, "\n".join([f"added: {added}", *findings, listed(home)])))
    approved("store/imports", table(said))


def test_what_another_process_stores_during_an_import_stays_and_leaves_no_second_folder(
    full, other, make_dataset, make_run
):
    dataset = make_dataset("Theirs")

    def store(done, total):
        if done == total:
            other.save_dataset(dataset)
            other.save_run(make_run(dataset, name="their run"))

    found = import_workspace.bring_in(other, io.BytesIO(exported(full)), "file", store)
    assert not found.added["datasets"] and not found.added["runs"]
    assert [row.name for row in (*other.datasets(), *other.runs())] == ["Theirs", "their run"]
    for kind in ("datasets", "runs"):
        assert len(list((other.root / kind).iterdir())) == 1


@pytest.mark.parametrize("labelled", [True, False])
def test_a_labelling_plan_goes_along_with_what_was_said_since_it_began(
    full, shop, other, make_dataset, labelled
):
    begun = LabelPlans(full).begin(shop, PLAN, "Read *all*.")
    said = ((1.0, "Ann"), (None, "Bo")) if labelled else ()
    for label, who in said:
        Corrections(full).correct(shop, CORRECTED, label, who)
    LabelPlans(full).resume(begun, "Ann")
    # In this workspace the log has other numbers.
    mine = make_dataset("Mine", salt="!")
    save(other, mine)
    for label in (0.0, 1.0, 2.0):
        Corrections(other).correct(mine.id, ("7", "1"), label, "Cy")
    for _again in range(2):
        assert bring(other, exported(full)).findings == []
        assert shared(full).items() <= shared(other).items()
    assert LabelPlans(other).newest(shop).revision != LabelPlans(full).newest(shop).revision


class Full(io.BytesIO):
    """A file on a disk that is full after `room` bytes."""

    room = 0

    def write(self, content):
        if self.tell() + len(content) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(content)


@pytest.mark.parametrize("room", [0, 1_000])
def test_a_full_disk_is_one_error_and_none_comes_later(full, monkeypatch, room):
    later = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: later.append(str(told.exc_value)))
    target = Full()
    target.room = room
    with pytest.raises(OSError, match="No space") as refused:
        archive.export(full, target, "1.2.3")
    target.close()
    # The frames of the traceback have references to the archive.
    refused.value.with_traceback(None)
    del refused
    gc.collect()
    assert later == []


# Broken files.


def column(ending, name, values):
    """Return a change that replaces a column of a table."""

    def rewrite(parts, _head):
        place = named(parts, ending)
        found, target = pq.read_table(io.BytesIO(parts[place])), io.BytesIO()
        at = found.column_names.index(name)
        pq.write_table(found.set_column(at, name, pa.array(values)), target)
        parts[place] = target.getvalue()

    return rewrite


def twice(content):
    target = io.BytesIO(content)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(target, "a") as more:
        name = named(more.namelist(), "qrels.parquet")
        # Also with the same content, because it is not known which one is meant.
        more.writestr(name, more.read(name))
    return target.getvalue()


def another_id(parts, own):
    """Change the id of the data set, also in the names of its parts."""
    (old,), new = own["datasets"], "0" * 16
    own["datasets"] = {new: own["datasets"][old]}
    for name in [name for name in parts if old in name]:
        parts[name.replace(old, new)] = parts.pop(name)


def part(ending, content):
    return lambda parts, _head: parts.update({named(parts, ending): content})


def more(name):
    return lambda parts, _head: parts.update({name: b"x"})


def without(ending):
    return lambda parts, _head: parts.pop(named(parts, ending))


def head(**fields):
    return lambda _parts, own: own.update(fields)


def reported(**wrong):
    """Return a change that adds a finding with a wrong field to the report."""
    finding = {"severity": "note", "code": "x", "template": "{n:,} rows.", "params": {"n": 1},
               "remedy": "", "file": "", "line": None, "count": 1, "examples": []}  # fmt: skip

    def change(about):
        report = json.loads(about["report"])
        about["report"] = json.dumps(report | {"findings": [finding | wrong]})

    return lambda content: retold(content, "datasets", change)


SCENARIO = b'{"settings": {"scenarios": "{\\"a\\": {\\"no\\": 1}}"}}'
PARTS = {
    "a part that is missing": without("qrels.parquet"),
    "a path out of the folder": more("../../evil"),
    "an absolute path": more("/etc/evil"),
    "an id that is a path": lambda _, own: own.update(
        datasets={"../x": next(iter(own["datasets"].values()))}
    ),
    "content that is not its id": another_id,
    "another format": head(format="something"),
    "a newer version": head(version=2, rankdash="9.9"),
    "a run listed twice": lambda _, own: next(iter(own["datasets"].values())).append("run-1"),
    "a table that is none": part("qrels.parquet", b"PAR1 not really PAR1"),
    "settings that are none": part("settings.json", SCENARIO),
    "a foreign document": column("g-documents.parquet", "doc_id", ["01", "1", "elsewhere"]),
    "an unknown state": column("runs/run-1/queries.parquet", "state", ["done", "great", "failed"]),
    "nonsense that was measured": column("measured.parquet", "measured", ['{"pairs": "many"}']),
}
# Without an update of the list of parts.
LISTED = {
    "a wrong hash": lambda parts, _: parts.update(
        {(name := named(parts, "about.json", "datasets")): parts[name].replace(b"Shop", b"Shed")}
    ),
    "a part that is listed and missing": without("about.json"),
    "a part that is not listed": more("more.txt"),
    "a list that is none": head(parts=[1]),
    "a part larger than it says": part("about.json", b" " * 50_000_000),
}
BROKEN = {
    **{name: partial(repacked, change=change) for name, change in PARTS.items()},
    **{name: partial(repacked, change=each, keep_list=True) for name, each in LISTED.items()},
    "no list": lambda _content: zipped({"anything": b"else"}),
    "truncated": lambda content: content[: len(content) // 2],
    "no zip": lambda _content: b"query_id,doc_id\n",
    "empty": lambda _content: b"",
    "two parts of one name": twice,
    "a report that is none": told("datasets", report="[]"),
    # Such a report would break the page on which it is shown.
    **{
        f"a finding of the form {form}": reported(template=form)
        for form in ("{lacking} rows.", "{n:>1000000000}", "{n.__class__}")
    },
    "a finding as severe as none": reported(severity="fatal"),
    "a number for an example": reported(examples=[1]),
    "a note on an unknown query": told("datasets", "notes", 0, query_id="x"),
    "a label of an unknown query": told("datasets", "corrections", 0, query_id="x"),
    "a grade of an unknown query": told("datasets", "judges", 0, "pairs", 0, query_id="x"),
    "a remark on an unknown query": told("datasets", "label_notes", 0, query_id="x"),
    "an explained document that is unknown": told("runs", "explanations", 0, doc_id="x"),
    "an explanation with a text for a score": told(
        "runs", "explanations", 0, result='{"score": "high", "stages": [], "read": 1, "full": 1}'
    ),
}


@pytest.fixture(scope="module")
def content(made, tmp_path_factory):
    copy = shutil.copytree(made, tmp_path_factory.mktemp("exported") / "home")
    return exported(Workspace.open(copy))


def test_a_broken_file_is_refused_in_words_and_adds_nothing(content, other, make_dataset, approved):
    save(other, make_dataset("Mine", salt="!"))
    before, said = builders.content_of(other.root), {}
    for kind, harm in BROKEN.items():
        with pytest.raises(RankdashError, match="Nothing was imported") as refused:
            bring(other, harm(content))
        assert refused.value.remedy and builders.content_of(other.root) == before, kind
        assert kind == "a part larger than it says" or refused.value.file == "shop.rankdash.zip"
        with speaking("zh"):
            said[kind] = f"{refused.value}\n{error_text(refused.value)}"
    assert not (other.root / "runs").exists() or list((other.root / "runs").iterdir()) == []
    approved("store/broken_files", table(said))


def test_what_is_just_as_large_as_is_taken_is_taken_and_nothing_larger(content, other):
    with pytest.raises(LimitError, match="Nothing was imported"):
        import_workspace.bring_in(other, io.BytesIO(content), "big", bounds=Bounds(together=1_000))
    assert other.datasets() == []
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


def test_all_is_added_or_nothing(full, other, monkeypatch):
    def refuse(*_):
        raise StoreError("There is no room left.")

    monkeypatch.setitem(import_workspace.JOIN, "explanations", refuse)
    with pytest.raises(StoreError, match="no room"):
        bring(other, exported(full))
    assert (other.datasets(), other.runs()) == ([], [])
    assert list((other.root / "datasets").iterdir()) == []
