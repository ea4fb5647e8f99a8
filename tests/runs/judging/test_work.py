"""Judges in a worker: counted, stored, cancelled, resumed, and separate from human labels."""

import pytest

from rankdash.core.base.errors import DataError, SettingError, StoreError
from rankdash.core.runs.jobs import Handover, line
from rankdash.core.workspace.jobs.judges import NOT_ASKED, StoredJudges
from rankdash.core.workspace.jobs.leases import Owner
from rankdash.core.workspace.notes import Corrections
from rankdash.features.judge.asking import JudgeRequest, submit
from tests.approved import masked, table
from tests.results import shown
from tests.store.builders import grade


def say(grade):
    return lambda body: (f"A reason.\nGrade: {grade}", {})


def grades_of(rows, judge_id):
    return rows.grades(judge_id).set_index(["query_id", "doc_id"])["grade"]


def test_lives_of_judges_are_as_approved(
    add, rows, served, server, pairs, workspace, dataset, make_dataset, monkeypatch, approved
):
    """The steps of each judge. Three pairs are never sent: d7 has no text."""
    lives = {}

    def step(name, judge_id, resumed=None, handover=None):
        if resumed is not None:
            assert rows.row(judge_id).can_resume
            rows.resume(judge_id, resumed)
        before = len(server.seen)
        row = served(judge_id, handover)
        bodies = [body for _, _, body in server.seen[before:]]
        asked = f"{len(bodies)} asked, {sum(body['temperature'] > 0 for body in bodies)} varied"
        grades = rows.grades(judge_id)["grade"].value_counts().sort_index()
        failures = dict(sorted(rows.failures(judge_id).items()))
        said = f"{row.state}, {asked}, grades {shown(grades)}, failures {shown(failures)}"
        lives[name] = f"{said}\n{shown(row.usage)}\n{row.error or ''}"

    def judge(guidelines, **settings):
        server.forget()
        return add(guidelines=guidelines, **{"concurrency": 1, **settings})

    one = judge("all", price_in=1.0, price_out=2.0)
    row = rows.row(one)
    assert (row.state, row.graded, row.total, row.open) == ("queued", 0, 20, 20)
    assert set(rows.grades(one)["error"]) == {NOT_ASKED}
    step("every pair", one)
    found = rows.grades(one)
    assert list(zip(found["query_id"], found["doc_id"], strict=True)) == pairs
    lives["the first answer"] = f"{found['answers'][0]}, settled but {rows.row(one).unsettled}"
    again = add("again", guidelines="all")
    step("the same question is asked once", again)
    assert rows.grades(one)[["grade", "reason"]].equals(rows.grades(again)[["grade", "reason"]])
    step("of three repeats one is known", add(guidelines="all", repeats=3))

    server.forget()
    replies = ["So.\nGrade: 1"] * 4 + ["Hm."] * 3 + ["So.\nGrade: 9"] + ["So.\nGrade: 2"] * 99
    failing = judge("failing")
    server.reply = lambda body: (replies.pop(0), {})
    server.fail({}, {"status": 500}, {"status": 429}, {"html": True})
    step("what fails is missing by kind", failing)
    lives["so it is called"] = shown(sorted(set(rows.grades(failing)["error"])))
    step("a resume asks for them again", failing, ())

    def unread(name):
        judge_id = judge(name)
        server.reply = lambda body: ("So.\nGrade: 2" if body["temperature"] else "Hm.", {})
        server.fault_of = lambda body: {"status": 500} if len(server.seen) in (3, 4) else {}
        step(f"{name}: at temperature 0 nothing can be read", judge_id)
        return judge_id, sorted(rows.unread(judge_id))

    judge_id, pairs_left = unread("all unread")
    step("they are asked in another way, the failed ones as before", judge_id, ())
    judge_id, pairs_left = unread("some unread")
    step("or four of them alone", judge_id, pairs_left[:4])
    assert set(pairs_left) - rows.unread(judge_id) == set(pairs_left[:4])

    asked = [pair for pair in pairs if pair[1] != "d7"]
    for concurrency in (1, 8):
        judge_id = judge(f"first fail {concurrency}", asked=asked, concurrency=concurrency)
        server.fault_of = lambda body: (
            {} if "ask q3\n" in body["messages"][1]["content"] else {"status": 500}
        )
        step(f"pairs that fail hold up no others, {concurrency} at once", judge_id)
        step(f"not where they are all that is left, {concurrency} at once", judge_id, ())

    judge_id = judge("refused")
    server.key = "sk-other"
    step("a refused key", judge_id)
    server.key = ""
    step("and then the right one", judge_id, ())
    judge_id = judge("no grade")
    server.reply = lambda body: ("评分：2", {})
    step("no grade at all", judge_id)

    handover, typed = Handover(), {"key_variable": "RACK_API_KEY"}
    monkeypatch.delenv("RACK_API_KEY", raising=False)
    judge_id = judge("typed", **typed)
    server.key = "sk-typed-4711"
    handover.feed(line(judge_id, {"RACK_API_KEY": server.key}))
    step("a typed key", judge_id, handover=handover)
    step("is not held for the next one", add(guidelines="next", **typed), handover=handover)
    files = [file for file in workspace.root.rglob("*") if file.is_file()]
    assert not any(b"sk-typed" in file.read_bytes() for file in files)

    many = make_dataset(queries=30, documents=8, depth=5)
    workspace.save_dataset(many)
    server.forget()
    server.fault_of = lambda body: {"status": 503} if len(server.seen) > 10 else {}
    asked = [
        (q, doc) for q in many.queries["query_id"] for doc in many.candidates.documents_of(q)[0]
    ]
    settings = {"model": "tiny", "base_url": server.url, "key_variable": "none"}
    settings |= {"retries": 0, "concurrency": 1}
    wish = JudgeRequest(many.id, settings, ["a"], 5, asked)
    step("with many left an endpoint that fails has gone", submit(workspace, wish))
    approved("runs/judges", masked(table(lives), address=r"127\.0\.0\.1:\d+"))
    assert Corrections(workspace).revision(dataset.id) == 0


def test_a_judge_that_is_cancelled_keeps_what_it_asked_and_resumes_with_the_rest(
    add, rows, server, pairs, served, until_told
):
    judge_id = add(concurrency=1)
    cancel = until_told(StoredJudges, lambda: rows.cancel(judge_id))
    server.reply = lambda body: (len(server.seen) == 6 and cancel()) or say(1)(body)
    row = served(judge_id)
    assert row.state == "cancelled"
    assert 6 <= row.graded < 15
    assert row.usage["calls"] == row.graded == len(server.seen)
    assert row.unsettled == 0
    kept = grades_of(rows, judge_id).dropna()
    server.reply = say(2)
    rows.resume(judge_id)
    assert served(judge_id).state == "done"
    assert grades_of(rows, judge_id)[kept.index].tolist() == kept.tolist() == [1.0] * len(kept)
    assert len(server.seen) == len([pair for pair in pairs if pair[1] != "d7"])


def test_a_worker_that_dies_leaves_its_batch_to_the_next_and_what_may_have_been_charged_is_told(
    add, rows, server, served, approved
):
    judge_id, dead, other = add(), Owner(host="elsewhere"), Owner(host="elsewhere", token="other")
    rows.claim(dead)
    pair = grade(("q0", rows.pending(judge_id)[0][1]))
    lost = {"calls": 4, "billed": {"prompt_tokens": 70.0}, "estimated": 4}
    more = {"calls": 5, "billed": {}, "estimated": 5}
    before = {"calls": 3, "billed": {"prompt_tokens": 1000.0, "completion_tokens": 5.0}}
    steps = {
        "it asks": lambda: rows.begin(judge_id, dead, {}, 5, more),
        "and keeps a pair": lambda: rows.store(
            judge_id, dead, [pair], before, at_risk=4, at_risk_usage=lost
        ),
        "it is dead": lambda: rows.interrupt(dead.token),
        "the next one": lambda: [rows.resume(judge_id), rows.claim(other).id == judge_id][1],
        "is dead before it asks": lambda: rows.interrupt(other.token),
        "one that lives": lambda: [rows.resume(judge_id), served(judge_id), len(server.seen)][2],
        "it is not the first one's any more": lambda: rows.begin(judge_id, dead, {}, 1, lost),
        "nor does that one keep": lambda: rows.store(judge_id, dead, [pair | {"grade": 0.0}], {}),
    }
    cases = {}
    for name, step in steps.items():
        told, row = step(), rows.row(judge_id)
        first = rows.grades(judge_id)["grade"].iloc[0]
        said = f"{row.state}, {row.graded} graded, the first {first}, {row.unsettled} unsettled"
        cases[name] = f"{told}: {said}, {shown(row.usage)}"
    approved("runs/dead_judges", table(cases))


def test_several_judges_are_apart_and_go_with_their_data_set(add, rows, served, workspace, dataset):
    one, two = add("one"), add("two", guidelines="x")
    served(one), served(two)
    assert [row.name for row in rows.rows(dataset.id)] == ["one", "two"]
    assert rows.row(one).template != rows.row(two).template
    rows.rename(two, "  two\n B ")
    assert rows.row(two).name == "two B"
    with pytest.raises(DataError, match="name of the judge is empty"):
        rows.rename(two, " \n")
    rows.delete(two)
    with pytest.raises(StoreError, match="There is no judge"):
        rows.row(two)
    assert len(rows.grades(two)) == 0
    workspace.delete_dataset(dataset.id)
    assert rows.rows() == []
    assert len(rows.grades(one)) == 0


def test_a_wish_that_cannot_be_is_refused_before_it_is_queued(add, rows):
    with pytest.raises(DataError, match="no query–document pairs"):
        add(asked=[])
    with pytest.raises(SettingError, match="must contain"):
        add(prompt="no places")
    assert rows.rows() == []
