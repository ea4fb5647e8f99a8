"""Judges in a worker: counted, kept, cancelled, resumed, and apart from people's labels."""

import threading

import pytest

from rankdash.analysis.judging.judgements import Judgements
from rankdash.errors import DataError, SettingError, StoreError
from rankdash.runs.judging.wish import JudgeRequest, submit
from rankdash.runs.judging.work import Judging
from rankdash.runs.key_pipe import Handover, line
from rankdash.store.jobs.judges import NOT_ASKED, StoredJudges
from rankdash.store.jobs.leases import Owner
from rankdash.store.notes.corrections import Corrections


def say(grade):
    return lambda body: (f"A reason.\nGrade: {grade}", {})


def test_a_judge_grades_every_pair_and_tells_what_it_cost(
    add, rows, judging, server, dataset, pairs
):
    judge_id = add("Mine", price_in=1.0, price_out=2.0)
    row = rows.row(judge_id)
    assert (row.state, row.graded, row.failed, row.total, row.open) == ("queued", 0, 0, 20, 20)
    assert set(rows.grades(judge_id)["error"]) == {NOT_ASKED}
    assert judging.serve()
    assert not judging.serve()
    row, found = rows.row(judge_id), rows.grades(judge_id)
    without = [doc for _, doc in pairs].count("d7")
    assert without > 0
    assert (row.state, row.graded, row.failed, row.open) == ("done", 20 - without, without, 0)
    assert list(zip(found["query_id"], found["doc_id"], strict=True)) == pairs
    lost = found[found["doc_id"] == "d7"]
    assert lost["grade"].isna().all()
    assert set(lost["error"]) == {"the document has no text"}
    assert rows.failures(judge_id) == {"no_text": without}
    graded = found[found["doc_id"] != "d7"]
    # "ask q0" and "text of d0" share no word.
    assert set(graded["grade"]) == {0.0}
    assert set(graded["reason"]) == {"Shared words: 0."}
    assert graded["answers"].iloc[0] == [
        {"grade": 0.0, "reason": "Shared words: 0.", "error": "", "kind": ""}
    ]
    assert (row.name, row.model, row.top, row.systems, row.depth) == (
        *("Mine", "tiny", 3), ("a", "b"), 5,
    )  # fmt: skip
    # The server's own count.
    assert row.usage["calls"] == len(server.seen) == 20 - without
    read = sum(len("".join(m["content"] for m in body["messages"])) // 4
               for _, _, body in server.seen)  # fmt: skip
    assert row.usage["billed"]["prompt_tokens"] == read
    written = row.usage["billed"]["completion_tokens"]
    assert row.usage["billed"]["dollars"] == pytest.approx(read * 1e-6 + written * 2e-6)
    assert row.unsettled == 0
    table = Judgements(row.name, (0, row.top), found)
    assert (len(table), table.failed) == (20, without)


def test_what_fails_is_missing_by_kind_and_is_asked_again_by_a_resume(
    add, rows, server, workspace, dataset, served
):
    replies = iter(["So.\nGrade: 1"] * 4 + ["Hm."] * 3 + ["So.\nGrade: 9"] + ["So.\nGrade: 2"] * 99)
    server.reply = lambda body: (next(replies), {})
    judge_id = add(concurrency=1)
    server.fail({}, {"status": 500}, {"status": 429}, {"html": True})
    row = served(judge_id)
    without = rows.failures(judge_id).pop("no_text")
    assert rows.failures(judge_id) == {
        "unreadable": 5,
        "rate_limit": 1,
        "server_error": 1,
        "no_text": without,
    }
    assert (row.state, row.failed, row.graded) == ("done", 7 + without, 13 - without)
    found = rows.grades(judge_id)
    assert not (found["grade"] == 0).any()
    assert found.loc[found["kind"] == "rate_limit", "error"].item() == (
        "the service answered 429: told to say 429"
    )
    before = row.usage
    assert row.can_resume
    rows.resume(judge_id)
    row = served(judge_id)
    assert (row.state, row.failed, row.graded) == ("done", without, 20 - without)
    assert row.usage["calls"] == before["calls"] + 7 == len(server.seen)
    assert row.usage["noted"] == 4
    assert Corrections(workspace).revision(dataset.id) == 0


@pytest.mark.parametrize("some", [False, True])
def test_a_resume_asks_in_another_way_for_what_could_not_be_read(add, rows, judging, server, some):
    """A server at temperature 0 answers the same request as before."""
    server.reply = lambda body: ("So.\nGrade: 2" if body["temperature"] else "Hm.", {})
    server.fault_of = lambda body: {"status": 500} if len(server.seen) in (3, 4) else {}
    judge_id = add(concurrency=1)
    judging.serve()
    unread = rows.unread(judge_id)
    failures = rows.failures(judge_id)
    assert failures["server_error"] == 2
    assert len(unread) == failures["unreadable"] > 5
    asked = len(server.seen)
    rows.resume(judge_id, sorted(unread)[:4] if some else ())
    judging.serve()
    found = rows.grades(judge_id)
    graded = found[found["grade"] == 2]
    pairs = set(zip(graded["query_id"], graded["doc_id"], strict=True))
    assert pairs == (set(sorted(unread)[:4]) if some else unread)
    varied = [body["temperature"] > 0 for _, _, body in server.seen[asked:]]
    assert sum(varied) == len(pairs)
    assert varied.count(False) == (0 if some else 2)
    assert not rows.unread(judge_id) & pairs


@pytest.mark.parametrize("concurrency", [1, 8])
def test_pairs_that_fail_whenever_they_are_asked_do_not_hold_up_the_others(
    add, rows, judging, server, pairs, concurrency
):
    """They come first, and are all that is left to a resume."""
    server.fault_of = lambda body: (
        {} if "ask q3\n" in body["messages"][1]["content"] else {"status": 500}
    )
    asked = [pair for pair in pairs if pair[1] != "d7"]
    good = sum(query == "q3" for query, _ in asked)
    assert good >= 4
    assert len(asked) - good > 8
    judge_id = add(asked=asked, concurrency=concurrency)
    for _ in range(2):
        assert judging.serve()
        row = rows.row(judge_id)
        assert (row.state, row.graded, row.failed) == ("done", good, len(asked) - good)
        assert rows.failures(judge_id) == {"server_error": len(asked) - good}
        rows.resume(judge_id)


def test_an_endpoint_that_fails_from_some_pair_on_ends_the_judge(
    add, rows, server, workspace, make_dataset, served
):
    """With so many pairs left that asking all would be a waste."""
    many = make_dataset(queries=30, documents=8, depth=5)
    workspace.save_dataset(many)
    server.fault_of = lambda body: {"status": 503} if len(server.seen) > 10 else {}
    settings = {
        "model": "tiny", "base_url": server.url, "key_variable": "none",
        "retries": 0, "concurrency": 1,
    }  # fmt: skip
    asked = [
        (q, doc) for q in many.queries["query_id"] for doc in many.candidates.documents_of(q)[0]
    ]
    judge_id = submit(workspace, JudgeRequest(many.id, settings, ["a"], 5, asked))
    row = served(judge_id)
    assert (row.state, row.graded, row.failed, len(server.seen)) == ("failed", 10, 4, 15)
    assert "keeps failing: the service answered 503" in str(row.error)


def test_a_judge_that_is_cancelled_keeps_what_it_asked_and_resumes_with_the_rest(
    add, rows, judging, server, pairs, served
):
    asked = []

    def reply(body):
        asked.append(body)
        if len(asked) == 6:
            rows.cancel(judge_id)
            # The worker hears of it with its next beat.
            rows_seen.wait(30)
        return "So.\nGrade: 1", {}

    rows_seen = threading.Event()
    beat = StoredJudges.beat

    def beating(self, *args):
        going = beat(self, *args)
        if not going:
            rows_seen.set()
        return going

    server.reply = reply
    judge_id = add(concurrency=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StoredJudges, "beat", beating)
        row = served(judge_id)
    assert row.state == "cancelled"
    assert 6 <= row.graded < 15
    assert row.usage["calls"] == row.graded == len(server.seen)
    assert row.unsettled == 0
    kept = rows.grades(judge_id).set_index(["query_id", "doc_id"])["grade"].dropna()
    server.reply = say(2)
    rows.resume(judge_id)
    judging.serve()
    row, grades = rows.row(judge_id), rows.grades(judge_id).set_index(["query_id", "doc_id"])
    assert row.state == "done"
    assert grades.loc[kept.index, "grade"].tolist() == kept.tolist() == [1.0] * len(kept)
    texts = [pair for pair in pairs if pair[1] != "d7"]
    assert len(server.seen) == len(texts)


def test_a_worker_that_dies_leaves_its_batch_to_the_next_and_says_what_may_have_been_charged(
    add, rows, workspace, server, served
):
    judge_id = add()
    dead = Owner(host="elsewhere")
    rows.claim(dead)
    doc_id = rows.pending(judge_id)[0][1]
    pair = {"query_id": "q0", "doc_id": doc_id, "grade": 2.0, "reason": "r", "answers": "[]"}
    pair |= {"error": "", "kind": ""}
    lost = {"calls": 4, "billed": {"prompt_tokens": 70.0}, "estimated": 4}
    assert rows.begin(judge_id, dead, {}, 5, {"calls": 5, "billed": {}, "estimated": 5})
    before = {"calls": 3, "billed": {"prompt_tokens": 1000.0, "completion_tokens": 5.0}}
    assert rows.keep(judge_id, dead, [pair], before, at_risk=4, at_risk_usage=lost)
    assert rows.row(judge_id).usage == before
    rows.interrupt(dead.token)
    row = rows.row(judge_id)
    assert (row.state, row.graded, row.unsettled) == ("interrupted", 1, 4)
    assert row.usage == {
        "calls": 7,
        "billed": {"prompt_tokens": 1070.0, "completion_tokens": 5.0},
        "estimated": 4,
    }
    rows.resume(judge_id)
    # A worker that dies before it asks anything changes nothing of that.
    rows.claim(Owner(host="elsewhere", token="dead at once"))
    rows.interrupt("dead at once")
    assert rows.row(judge_id).usage["calls"] == 7
    rows.resume(judge_id)
    row = served(judge_id)
    assert (row.state, row.unsettled) == ("done", 4)
    assert rows.grades(judge_id).iloc[0]["grade"] == 2.0
    assert row.usage["calls"] == 7 + len(server.seen)
    assert row.usage["estimated"] == 4
    assert row.usage["billed"]["prompt_tokens"] > 1070
    # It is not its own any more.
    assert not rows.begin(judge_id, dead, {}, 1, lost)
    assert not rows.keep(judge_id, dead, [{**pair, "grade": 0.0}], {})
    assert rows.grades(judge_id).iloc[0]["grade"] == 2.0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"key": "sk-other"}, ["refused the request (401)"]),
        ({"reply": lambda body: ("评分：2", {})}, ["that the judge graded: none of 20", "评分：2"]),
    ],
    ids=["a refused key", "no grade"],
)
def test_a_judge_that_fails_says_why_and_nothing_is_lost(
    add, rows, judging, server, change, says, served
):
    judge_id = add()
    for name, value in change.items():
        setattr(server, name, value)
    row = served(judge_id)
    assert row.state == "failed"
    assert all(part in str(row.error) for part in says)
    server.forget()
    rows.resume(judge_id)
    judging.serve()
    assert rows.row(judge_id).state == "done"


def test_the_same_question_is_asked_once(add, rows, judging, server, workspace):
    first = add()
    judging.serve()
    asked = len(server.seen)
    again = add("again")
    judging.serve()
    assert len(server.seen) == asked
    grades = [rows.grades(each)[["grade", "reason"]] for each in (first, again)]
    assert grades[0].equals(grades[1])
    usage = {"calls": 0, "failed": 0, "billed": {}, "noted": 0, "estimated": 0}
    assert rows.row(again).usage == usage
    three = add("three", repeats=3)
    judging.serve()
    # One of three is cached.
    assert len(server.seen) == 3 * asked
    kept = rows.grades(three)["answers"]
    assert {len(answers) for answers in kept} == {0, 3}
    add("other", guidelines="Other ones.")
    judging.serve()
    assert len(server.seen) == 4 * asked


def test_failures_are_not_cached(add, rows, judging, server):
    server.reply = lambda body: ("So.\nGrade: 2" if len(server.seen) > 5 else "Hm.", {})
    add(concurrency=1)
    judging.serve()
    before = len(server.seen)
    second = add()
    judging.serve()
    assert len(server.seen) == before + 5
    assert set(rows.failures(second)) == {"no_text"}


def test_several_judges_are_apart_and_go_with_their_data_set(
    add, rows, judging, workspace, dataset, server
):
    one, two = add("one"), add("two", guidelines="x")
    judging.serve()
    assert [row.name for row in rows.rows(dataset.id)] == ["one", "two"]
    assert rows.row(one).template != rows.row(two).template
    rows.rename(two, "  two\n B ")
    assert rows.row(two).name == "two B"
    with pytest.raises(DataError, match="needs a name"):
        rows.rename(two, " \n")
    rows.delete(two)
    with pytest.raises(StoreError, match="There is no judge"):
        rows.row(two)
    assert len(rows.grades(two)) == 0
    workspace.delete_dataset(dataset.id)
    assert rows.rows() == []
    assert len(rows.grades(one)) == 0


def test_a_judge_that_is_deleted_while_it_runs_stops(add, rows, workspace, server):
    stopping = threading.Event()
    judging = Judging(workspace, Owner(), stopping)

    def reply(body):
        if len(server.seen) == 3:
            rows.delete(judge_id)
        return "So.\nGrade: 1", {}

    server.reply = reply
    judge_id = add(concurrency=1)
    judging.serve()
    assert rows.rows() == []


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"asked": []}, DataError, "There is no pair"),
        ({"prompt": "no places"}, SettingError, "must contain"),
    ],
)
def test_a_wish_that_cannot_be_is_refused_before_it_is_queued(add, rows, changes, error, says):
    with pytest.raises(error, match=says):
        add(**changes)
    assert rows.rows() == []


def test_a_typed_key_goes_to_the_endpoint_and_into_no_file(
    add, rows, workspace, server, monkeypatch, dataset
):
    monkeypatch.delenv("RACK_API_KEY", raising=False)
    server.key = "sk-typed-4711"
    handover = Handover()
    judge_id = add(key_variable="RACK_API_KEY")
    handover.feed(line(judge_id, {"RACK_API_KEY": "sk-typed-4711"}))
    Judging(workspace, Owner(), threading.Event(), handover).serve()
    assert rows.row(judge_id).state == "done"
    assert {headers["Authorization"] for _, headers, _ in server.seen} == {"Bearer sk-typed-4711"}
    files = [file for file in workspace.root.rglob("*") if file.is_file()]
    assert not any(b"sk-typed" in file.read_bytes() for file in files)
    # It is not held for the next one.
    again = add(key_variable="RACK_API_KEY", guidelines="x")
    Judging(workspace, Owner(), threading.Event(), handover).serve()
    assert rows.row(again).state == "failed"
    assert "The key of the service is missing" in str(rows.row(again).error)
