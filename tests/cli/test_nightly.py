"""`nightly`: files and a search engine on this machine, night after night."""

import json
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from rankdash.core.base.files import locked
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.notes import Corrections, Pins, RunNotes
from tests.rerankers.loopback import engine_at
from tests.sets import ROOT
from tests.stored import keep_lists, keep_rows

QUERIES = [f"q{number}" for number in range(40)]
RNG = np.random.default_rng(3)
# Every query has two relevant documents among twelve.
DOCS = {query: [f"{query}-d{number}" for number in range(12)] for query in QUERIES}
QRELS = "".join(f"{query}\t{DOCS[query][place]}\t1\n" for query in QUERIES for place in (0, 4))


def trec(orders):
    lines = [
        f"{query} Q0 {doc} {rank} {100 - rank} x\n"
        for query, docs in orders.items()
        for rank, doc in enumerate(docs, 1)
    ]
    return "".join(lines)


def worse(orders, queries=20):
    """Move the first document to the end, for some of the queries."""
    return orders | {query: [*orders[query][1:], orders[query][0]] for query in QUERIES[:queries]}


class Nights:
    """A folder with a configuration, in which commands run."""

    def __init__(self, folder, command, **settings):
        self.folder, self.command, self.count = folder, command, 0
        folder.mkdir(exist_ok=True)
        data = folder / "data"
        data.mkdir()
        (data / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{QRELS}")
        rows = (json.dumps({"_id": query, "text": f"about {query}"}) for query in QUERIES)
        (data / "queries.jsonl").write_text("\n".join(rows))
        (folder / "main.trec").write_text(trec(DOCS))
        self.config = folder / "nightly.toml"
        given = {"data": "data", "run": ["{date}.trec"], "pinned": "main.trec", **settings}
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in given.items()]
        self.config.write_text("".join(lines))

    def night(self, orders=DOCS, *more):
        self.count += 1
        date = f"2026-11-{self.count:02d}"
        (self.folder / f"{date}.trec").write_text(trec(orders))
        return self.command("nightly", self.config, "--date", date, *more)

    @property
    def lines(self):
        text = (self.folder / "nights.jsonl").read_text()
        rows = [json.loads(line) for line in text.splitlines()]
        return [each for each in rows if "night" in each]


@pytest.fixture
def nights(tmp_path, run):
    return Nights(tmp_path / "here", run)


def test_a_drop_raises_one_alarm_until_it_is_accepted(nights):
    assert [nights.night().code for _ in range(3)] == [0, 0, 0]
    alarm = nights.night(worse(DOCS))
    assert alarm.code == 1
    assert alarm.out.startswith("Alarm: NDCG@10 -0.2")
    assert "largest losses: q0 -0.59, q1 -0.59," in alarm.out
    again = nights.night(worse(DOCS))
    assert again.code == 1 and "Alarm since night 4; later nights add no evidence." in again.out
    evidence = [each["metrics"]["ndcg@10"]["evidence"] for each in nights.lines]
    assert evidence[3] == evidence[4] != evidence[2]
    accepted = nights.command("nightly", nights.config, "--accept")
    assert accepted.code == 0 and accepted.out.startswith("Night 5 (2026-11-05) is the pinned run")
    after = nights.night(worse(DOCS))
    assert after.code == 0 and "against accepted night 5" in after.out
    assert nights.night(worse(worse(DOCS), 40)).code == 1


def test_files_of_the_user_beside_the_rankings_are_not_deleted(nights):
    theirs = nights.folder / "nights"
    # The first night uses the first folder.
    for folder in ("00001-1", "00042-1", "20261101-1"):
        (theirs / folder).mkdir(parents=True)
        (theirs / folder / "mine.txt").write_text("mine")
    (theirs / "lab.journal").write_text("mine")
    for _ in range(4):
        assert nights.night().code == 0
    assert {each.name for each in theirs.iterdir()} == {
        *("00001-1", "00042-1", "20261101-1", "lab.journal"), "00004-1",
    }  # fmt: skip
    assert [each.name for each in (theirs / "00001-1").iterdir()] == ["mine.txt"]


def test_an_alarm_ends_when_the_drop_is_gone(nights):
    for _ in range(3):
        nights.night()
    assert nights.night(worse(DOCS)).code == 1
    ended = nights.night()
    assert ended.code == 0 and "the drop is gone, so the alarm ends." in ended.out
    assert nights.lines[-1]["metrics"]["ndcg@10"]["alarm"] is None
    assert sum(nights.lines[-1]["metrics"]["ndcg@10"]["evidence"]) < 4


@pytest.mark.parametrize("days", ["++-++--", "++++++++++-++--", "++-++++-+"])
@pytest.mark.parametrize("pinned", ["main.trec", []], ids=["a file", "the first night"])
def test_the_same_defect_after_its_repair_raises_an_alarm_at_once(tmp_path, run, days, pinned):
    nights = Nights(tmp_path / "here", run, pinned=pinned)
    codes = [nights.night(DOCS if day == "+" else worse(DOCS)).code for day in days]
    assert codes == [int(day == "-") for day in days]


def test_each_year_starts_without_evidence(tmp_path, run):
    nights = Nights(tmp_path / "here", run, nights_per_year=3)
    for _ in range(6):
        nights.night()
    found = [sum(each["metrics"]["ndcg@10"]["evidence"]) for each in nights.lines]
    assert found[:3] == found[3:] and found[0] < found[1] < found[2]


def test_a_year_starts_without_evidence_if_its_first_night_is_not_usable(tmp_path, run):
    nights = Nights(tmp_path / "here", run, nights_per_year=3)
    rows = [{"query_id": query, "state": "failed", "latency_ms": None} for query in QUERIES[:3]]
    (nights.folder / "2026-11-04.timings.json").write_text(json.dumps(rows))
    codes = [nights.night().code for _ in range(6)]
    assert codes == [0, 0, 0, 1, 0, 0]
    found = [
        sum(each["metrics"]["ndcg@10"]["evidence"]) for each in nights.lines if each["metrics"]
    ]
    assert found[:2] == found[3:] and found[0] < found[1] < found[2]


def test_another_pinned_run_starts_the_evidence_again(nights):
    for _ in range(3):
        nights.night()
    assert nights.night(worse(DOCS)).code == 1
    (nights.folder / "main.trec").write_text(trec(worse(DOCS)))
    assert nights.night(worse(DOCS)).code == 0


def test_without_a_pinned_run_the_first_night_is_pinned(tmp_path, run):
    nights = Nights(tmp_path / "here", run, pinned=[])
    first = nights.night()
    assert first.code == 0
    assert first.out.startswith("Night 1 (2026-11-01) is the pinned run of later nights.\n")
    assert [nights.night().code, nights.night().code] == [0, 0]
    assert "night 4 (2026-11-04) against night 1" in nights.night(worse(DOCS)).out
    stored = sorted(each.name for each in (nights.folder / "nights").iterdir())
    assert stored == ["00001-1", "00004-1"]


def test_a_night_with_many_failed_queries_is_not_pinned(tmp_path, run):
    nights = Nights(tmp_path / "here", run, pinned=[], timings="times.json")
    rows = [{"query_id": q, "state": "failed", "latency_ms": 50.0} for q in QUERIES[:3]]
    (nights.folder / "times.json").write_text(json.dumps(rows))
    first = nights.night({query: DOCS[query] for query in QUERIES[3:]}, "--format", "text")
    assert first.code == 1
    assert first.out.startswith("Failed: failed queries, at most 2, night 1 (2026-11-01).\n")
    assert "no drop beyond 0.01: no run is pinned yet, so nothing was compared." in first.out
    assert "3 of 40 queries failed, so a later night is the pinned run." in first.out
    rows = [{"query_id": q, "state": "done", "latency_ms": 50.0} for q in QUERIES]
    (nights.folder / "times.json").write_text(json.dumps(rows))
    assert nights.night().out.startswith("Night 2 (2026-11-02) is the pinned run of later nights.")
    assert nights.night().out.startswith("No alarm: night 3 (2026-11-03) against night 2.")
    assert [each["reference"] for each in nights.lines] == ["", "night 2", "night 2"]
    assert nights.lines[2]["metrics"]["ndcg@10"]["margin"] == 0.01


def test_a_date_before_the_last_night_is_refused(nights):
    nights.night()
    nights.night()
    refused = nights.command("nightly", nights.config, "--date", "2026-11-01")
    assert refused.code == 2
    assert "The date 2026-11-01 is before 2026-11-02, the date of night 2" in refused.err
    assert len(nights.lines) == 2
    assert nights.command("nightly", nights.config, "--date", "2026-11-02").code == 0


def test_two_fetches_measure_the_churn(tmp_path, run):
    files = ["{date}.trec", "other.trec"]
    nights = Nights(tmp_path / "here", run, run=files, metrics=["hit@5", "mrr"])
    changed = DOCS | {"q3": [*DOCS["q3"][1:], "q3-d0"]}
    (nights.folder / "other.trec").write_text(trec(changed))
    shown = nights.night()
    assert "Churn: 0.2% of the top 10 differ between two fetches." in shown.out
    assert "for the 2 metrics together" in shown.out
    night = nights.lines[0]["metrics"]["mrr"]["night"]
    assert night["churn"] > 0 and night["fetches"] == 2


def test_a_query_that_lost_all_its_documents_is_part_of_the_churn(tmp_path, run):
    nights = Nights(tmp_path / "here", run, run=["{date}.trec", "other.trec"])
    (nights.folder / "other.trec").write_text(trec({each: DOCS[each] for each in QUERIES[4:]}))
    nights.night({query: DOCS[query] for query in QUERIES[:-2]})
    assert nights.lines[0]["churn"] == pytest.approx(6 / 40)


def test_failed_queries_are_no_zeros(tmp_path, run):
    nights = Nights(tmp_path / "here", run, timings="times.json", max_p95_ms=100)

    def failing(count):
        rows = [
            {"query_id": query, "state": "failed" if place < count else "done", "latency_ms": 50.0}
            for place, query in enumerate(QUERIES)
        ]
        (nights.folder / "times.json").write_text(json.dumps(rows))

    failing(2)
    few = nights.night({query: DOCS[query] for query in QUERIES[2:]})
    assert few.code == 0
    assert nights.lines[0]["metrics"]["ndcg@10"]["night"]["queries"] == 38
    assert nights.lines[0]["metrics"]["ndcg@10"]["night"]["change"] == 0
    assert nights.lines[0]["p95_ms"] == 50
    failing(3)
    many = nights.night({query: DOCS[query] for query in QUERIES[3:]})
    assert many.code == 1
    assert many.out.startswith("Failed: failed queries, at most 2, night 2")
    assert nights.lines[1]["metrics"] == {}


def test_a_night_with_many_failed_queries_is_not_accepted(nights):
    assert nights.night().code == 0
    rows = [{"query_id": query, "state": "failed", "latency_ms": None} for query in QUERIES[:3]]
    (nights.folder / "2026-11-02.timings.json").write_text(json.dumps(rows))
    assert nights.night({query: DOCS[query] for query in QUERIES[3:]}).code == 1
    before = (nights.folder / "nights.jsonl").read_bytes()
    refused = nights.command("nightly", nights.config, "--accept")
    assert refused.code == 2 and "3 of 40 queries of night 2 failed" in refused.err
    assert (nights.folder / "nights.jsonl").read_bytes() == before


@pytest.mark.parametrize("pinned", ["main.trec", []], ids=["a file", "the first night"])
def test_failed_queries_in_the_timings_beside_a_run_are_no_zeros(tmp_path, run, pinned):
    nights = Nights(tmp_path / "here", run, pinned=pinned, max_failed=0.5)
    for _ in range(3):
        assert nights.night().code == 0
    rows = [{"query_id": query, "state": "failed", "latency_ms": None} for query in QUERIES[:10]]
    (nights.folder / "2026-11-04.timings.json").write_text(json.dumps(rows))
    assert nights.night({query: DOCS[query] for query in QUERIES[10:]}).code == 0
    night = nights.lines[-1]["metrics"]["ndcg@10"]["night"]
    assert (night["queries"], night["change"]) == (30, 0)
    assert nights.lines[-1]["fetches"][0]["failed"] == QUERIES[:10]


def test_failed_queries_in_the_timings_beside_the_pinned_run_are_no_zeros(nights):
    (nights.folder / "main.trec").write_text(trec({each: DOCS[each] for each in QUERIES[4:]}))
    rows = [{"query_id": query, "state": "failed", "latency_ms": None} for query in QUERIES[:4]]
    (nights.folder / "main.timings.json").write_text(json.dumps(rows))
    assert nights.night().code == 0
    assert nights.lines[0]["metrics"]["ndcg@10"]["night"]["queries"] == 36


def test_a_query_counts_once_if_it_failed_in_one_of_two_fetches(tmp_path, run):
    files = ["{date}.trec", "other.trec"]
    nights = Nights(tmp_path / "here", run, run=files, max_failed=0.5)
    tonight = worse(DOCS)
    (nights.folder / "other.trec").write_text(trec({q: DOCS[q] for q in QUERIES[20:]}))
    rows = [{"query_id": query, "state": "failed", "latency_ms": None} for query in QUERIES[:20]]
    (nights.folder / "other.timings.json").write_text(json.dumps(rows))
    nights.night(tonight)
    metric = nights.lines[0]["metrics"]["ndcg@10"]
    assert metric["night"]["queries"] == 40 and metric["night"]["change"] < -0.1
    assert metric["mean"] - metric["pinned"] == pytest.approx(metric["night"]["change"])


def test_a_slow_night_fails(tmp_path, run):
    nights = Nights(tmp_path / "here", run, timings="times.csv", max_p95_ms=100)
    rows = "".join(f"{query},101.5\n" for query in QUERIES)
    (nights.folder / "times.csv").write_text(f"query_id,latency_ms\n{rows}")
    slow = nights.night()
    assert slow.code == 1 and "The observed value is 101 ms" not in slow.out
    assert "p95 latency, at most 100 ms: the observed value is 102 ms." in slow.out


def test_new_documents_without_labels_are_reported(nights):
    new = {query: [*(f"new{n}" for n in range(6)), *docs] for query, docs in DOCS.items()}
    shown = nights.night(new)
    assert (
        "Documents without a label in the top 10 of labelled queries: 90.0% tonight, 80.0% in the"
        in shown.out
    )
    assert "label them before you trust a drop" in shown.out


def test_outputs_for_ci(nights, tmp_path):
    files = [tmp_path / f"out.{ending}" for ending in ("xml", "md", "json")]
    outs = [part for file in files for part in ("--out", file)]
    for _ in range(2):
        nights.night()
    assert nights.night(worse(DOCS), *outs).code == 1
    case, failed = ElementTree.parse(files[0]).getroot().iter("testcase")
    assert case.get("classname") == "rankdash.nightly" and case.find("failure") is not None
    assert failed.find("failure") is None
    assert files[1].read_text().startswith("## Alarm: NDCG@10")
    content = json.loads(files[2].read_text())
    assert content["passed"] is False and content["night"] == 3
    assert content["metrics"]["ndcg@10"]["alarm"] == 3
    assert content["settings"]["evidence_of_an_alarm"] == 14600
    nights.config.write_text("data = 3")
    assert nights.command("nightly", nights.config, *outs).code == 2
    assert "the nightly runs" in files[0].read_text()
    assert files[1].read_text().startswith("## The nightly could not run")


def test_a_second_process_is_refused(nights):
    with locked(nights.folder / "nights.jsonl.lock"):
        done = subprocess.run(
            [sys.executable, "-m", "rankdash", "nightly", str(nights.config)],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2 and "Another process works on these nights." in done.stderr
    assert not (nights.folder / "nights.jsonl").exists()


def test_a_state_that_was_truncated_or_edited(nights):
    nights.night()
    state = nights.folder / "nights.jsonl"
    with state.open("ab") as stream:
        stream.write(b'{"night": 2, "da')
    assert nights.night().code == 0
    assert [each["night"] for each in nights.lines] == [1, 2]
    state.write_bytes(state.read_bytes().replace(b'"night": 2', b'"night": "two"', 1))
    refused = nights.night()
    assert refused.code == 2 and "nights.jsonl, line 2:" in refused.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run = []", "needs either endpoint or run"),
        ("alpha = 2.0", "alpha"),
        ('metrics = "ndcg@ten"', "ndcg@ten"),
        ("tomorrow = 1", "tomorrow"),
        ('pinned = "workspace"', "the configuration names none"),
        ('pinned = "other.trec"', "other.trec"),
        ('timings = ["a", "b"]', "different numbers"),
        ('profile = "none"', "none"),
        ('state = "nights"', "does not end in .jsonl"),
        ('state = "nights.d/.jsonl"', "does not end in .jsonl"),
    ],
)
def test_a_wrong_configuration_is_refused(nights, line, message):
    key = line.partition(" ")[0]
    lines = [each for each in nights.config.read_text().splitlines() if not each.startswith(key)]
    nights.config.write_text("\n".join([*lines, line]))
    refused = nights.night()
    assert refused.code == 2 and message in refused.err
    assert not (nights.folder / "nights.jsonl").exists()


def test_another_placeholder_in_a_file_name_is_part_of_the_name(tmp_path, run):
    nights = Nights(tmp_path / "here", run, run="{day}.trec", timings="{day}.json")
    refused = nights.night()
    assert refused.code == 2 and "{day}.trec" in refused.err and "bug" not in refused.err
    (nights.folder / "{day}.trec").write_text(trec(DOCS))
    (nights.folder / "{day}.json").write_text('[{"query_id": "q1", "latency_ms": 5}]')
    assert nights.night().code == 0


def test_nothing_to_accept_and_a_wrong_date(nights):
    assert (
        "No night can be accepted yet." in nights.command("nightly", nights.config, "--accept").err
    )
    wrong = nights.command("nightly", nights.config, "--date", "tomorrow")
    assert wrong.code == 2 and "is not a date" in wrong.err


def test_the_profile_for_monitoring_names_the_metrics(tmp_path, run):
    nights = Nights(tmp_path / "here", run, profile="monitoring")
    shown = nights.night()
    assert "Hit@5, no drop" in shown.out and "MRR, no drop" in shown.out
    assert "Targets, which do not raise an alarm: hit@5 1.0000" in shown.out


def test_a_night_is_a_run_on_history(tmp_path, run):
    workspace = Workspace.open(tmp_path / "home")
    rows = [
        {"query_id": query, "query": f"about {query}", "doc_id": doc, "document": doc,
         "label": int(place in (0, 4)), "rank": place + 1}
        for query in QUERIES for place, doc in enumerate(DOCS[query])
    ]  # fmt: skip
    stored = keep_rows(workspace, rows, "Shop")
    scores = [-float(place) for place in range(12)]
    pinned = keep_lists(workspace, stored, [(q, DOCS[q], scores) for q in QUERIES], "release 1")
    settings = {"data": "Shop", "workspace": "../home", "pinned": "workspace"}
    nights = Nights(tmp_path / "here", run, **settings)
    assert "No run of this data set is pinned" in nights.night().err
    Pins(workspace).pin(pinned.id)
    for _ in range(3):
        assert nights.night().code == 0
    assert nights.night(worse(DOCS)).code == 1
    names = [each.name for each in workspace.runs(stored)]
    assert names == ["release 1", *(f"nightly 2026-11-{day:02d}" for day in range(2, 6))]
    newest = workspace.runs(stored)[-1].id
    assert RunNotes(workspace).of(newest).text.startswith("Alarm: NDCG@10 -0.2")
    nights.command("nightly", nights.config, "--accept")
    assert Pins(workspace).of(stored) == newest
    assert "against accepted night 4" in nights.night(worse(DOCS)).out
    Pins(workspace).pin(pinned.id)
    assert "against release 1" in nights.night().out
    Corrections(workspace).correct(stored, ("q39", "q39-d0"), 0.0, "ann")
    nights.night()
    mean = nights.lines[-1]["metrics"]["ndcg@10"]["mean"]
    assert mean < nights.lines[-2]["metrics"]["ndcg@10"]["mean"]


def test_a_search_engine_is_fetched_each_night(tmp_path, run, server):
    server.documents = {doc: f"about {query}" for query in QUERIES for doc in DOCS[query][:1]}
    settings = {"run": [], "endpoint": "stub.json", "pinned": [], "depth": 5}
    nights = Nights(tmp_path / "here", run, **settings)
    (nights.folder / "stub.json").write_text(json.dumps(engine_at(server.url, headers={})))
    first = nights.night()
    assert first.code == 0, first.err
    assert len(server.seen) == 2 * len(QUERIES)
    assert [len(each["fetches"]) for each in nights.lines] == [2]
    assert not [*(nights.folder / "nights").glob("*.journal")]
    assert nights.night().code == 0
    assert nights.lines[1]["p95_ms"] > 0 and nights.lines[1]["churn"] == 0
    server.documents = {f"{doc}-moved": text for doc, text in server.documents.items()}
    codes = [nights.night(DOCS, "--repeat", 3).code for _ in range(2)]
    assert [len(each["fetches"]) for each in nights.lines] == [2, 2, 3, 3]
    assert codes[-1] == 1
    server.fail(*[{"status": 400}] * 400)
    gone = nights.night()
    assert (gone.code, len(nights.lines)) == (2, 4) and "refuses the requests" in gone.err


def test_a_fetch_that_was_interrupted_continues(tmp_path, run, server, monkeypatch):
    server.documents = {doc: f"about {query}" for query in QUERIES for doc in DOCS[query][:1]}
    settings = {"run": [], "endpoint": "stub.json", "depth": 5, "repeat": 1}
    nights = Nights(tmp_path / "here", run, **settings)
    (nights.folder / "stub.json").write_text(json.dumps(engine_at(server.url, headers={})))

    def stopped(*_arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("rankdash.features.nightly.command_night.fetched", stopped)
        assert nights.night().code == 130
    assert not (nights.folder / "nights.jsonl").exists()
    nights.count -= 1
    assert nights.night().code == 0
    assert len(server.seen) == len(QUERIES)
