"""`gate`: exit codes, reasons, and the three forms it is told in."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rankdash.analysis.statistics.verdict import TITLES
from rankdash.value.targets import Limit, Profile, Target
from tests.documented import DOCS, commands

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "assets" / "samples" / "helpcentre"


@pytest.fixture
def gate(run: Callable, tmp_path: Path) -> Callable:
    """Writes labels and two runs of queries with one relevant document each, by its places (None:
    the query is missing), and runs the gate in that folder."""

    def command(base: list[int], up: list[int | None], *options: object, name: str = "up"):
        (tmp_path / "labels.qrels").write_text(
            "".join(f"q{i} 0 good 1\n" for i in range(len(base)))
        )
        for system, places in (("base", base), (name, up)):
            rows = [
                f"q{i} Q0 {'good' if rank == place else f'bad{rank}'} {rank} {20 - rank} x\n"
                for i, place in enumerate(places)
                if place
                for rank in range(1, place + 1)
            ]
            (tmp_path / f"{system}.trec").write_text("".join(rows))
        return run(
            "gate", "--qrels", tmp_path / "labels.qrels",
            "--baseline", tmp_path / "base.trec", "--challenger", tmp_path / f"{name}.trec",
            *options,
        )  # fmt: skip

    return command


def timings(folder: Path, latencies: list[float | str | None]) -> Path:
    """A string in place of a latency is a state."""
    path = folder / "timings.json"
    rows = [
        {
            "query_id": f"q{i}",
            "state": each if isinstance(each, str) else "done",
            "latency_ms": None if isinstance(each, str) else each,
        }
        for i, each in enumerate(latencies)
    ]
    path.write_text(json.dumps(rows))
    return path


def test_it_passes_with_exit_code_0(gate, tmp_path):
    passed = gate(
        [2] * 20, [1] * 20, "--min", "mrr@10=0.8", "ndcg@10=0.8", "--min-gain", "mrr@10=0.0",
        "--max-hurt", "0.2", "--max", "p95_ms=500", "--timings", timings(tmp_path, [120.0] * 20),
    )  # fmt: skip
    assert passed.code == 0, passed.err
    assert passed.out.startswith("Passed: up against base. All 6 conditions are met.")
    assert passed.out.count("pass  ") == 6
    assert "FAIL" not in passed.out
    assert "one-sided at 95% confidence" in passed.out
    assert passed.err == ""


def test_a_profile_is_a_set_of_conditions_and_what_cannot_be_reached_is_skipped(gate, tmp_path):
    """With one relevant document a query, precision@3 is at most 0.333 where 0.8 is asked for."""
    out = [tmp_path / name for name in ("gate.json", "gate.md", "gate.xml")]
    files = [part for file in out for part in ("--out", file)]
    passed = gate(
        [2] * 20, [1] * 20, "--profile", "faq", "--timings", timings(tmp_path, [120.0] * 20), *files
    )  # fmt: skip
    assert passed.code == 0, passed.err
    assert passed.out.startswith("Passed: up against base. All 3 conditions are met. Skipped: 1.")
    assert re.search(r"skip +Precision@3, at least 0.8 +0.3333", passed.out)
    assert "the best order of these documents has 0.3333, so the target cannot" in passed.out
    said = json.loads(out[0].read_text())["conditions"]
    assert {each["subject"]: each["reason"] for each in said} == {
        "mrr": "met", "hit@3": "met", "precision@3": "unreachable", "p95_ms": "met",
    }  # fmt: skip
    assert "➖ skipped" in out[1].read_text()
    suites = ElementTree.fromstring(out[2].read_text())
    assert (suites.get("tests"), suites.get("failures"), suites.get("skipped")) == ("4", "0", "1")
    assert len(suites.findall("testsuite/testcase/skipped")) == 1


@pytest.mark.parametrize("form", ["json", "toml"])
def test_a_profile_may_be_ones_own_file(gate, tmp_path, form):
    """The same targets as the page exports them and as one types them; the relevant document is
    first in 14 of 20 queries and fourth in the others: MRR 0.775, hit@3 0.7."""
    own = tmp_path / f"shop.{form}"
    targets = (Target("mrr", target=0.6), Target("hit@3", minimum=0.9))
    own.write_text(
        Profile("Our shop", targets, (Limit("p95_ms", 100.0),)).to_json()
        if form == "json"
        else 'title = "Our shop"\nlimits = [{ what = "p95_ms", target = 100 }]\ntargets = ['
        '{ metric = "mrr", target = 0.6 }, { metric = "hit@3", minimum = 0.9 }]\n'
    )
    times = timings(tmp_path, [120.0] * 20)
    said = gate(
        [2] * 20, [1] * 14 + [4] * 6, "--profile", own, "--timings", times, "--json"
    ).json["conditions"]  # fmt: skip
    assert {each["subject"]: (each["limit"], each["reason"]) for each in said} == {
        "mrr": (0.6, "met"), "hit@3": (0.9, "missed"), "p95_ms": (100.0, "missed"),
    }  # fmt: skip
    assert [each["value"] for each in said] == [pytest.approx(0.775), pytest.approx(0.7), 120.0]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("shop", "", "There is no profile 'shop'"),
        ("none.json", None, "none.json: The profile cannot be read"),
        ("own.json", "{", "own.json, line 1: The profile cannot be read"),
        ("own.toml", 'title = "T"', "own.toml: The profile cannot be read: it has no targets."),
        ("own.toml", 'title = "T"\ntargets = [{ metric = "mrr", target = 5 }]', "outside 0 to 1"),
        ("own.toml", 'title = "T"\ntargets = [{ metric = "mmr", target = 0.5 }]', "'mrr'?"),
    ],
)
def test_a_profile_that_cannot_be_used_is_one_line(gate, tmp_path, name, text, expected):
    own = tmp_path / name
    if text:
        own.write_text(text)
    refused = gate([2] * 20, [1] * 20, "--profile", name if text == "" else own)
    assert refused.code == 2
    assert expected in refused.err
    assert refused.err.count("\n") == 1


def test_the_profile_is_not_written_over(gate, tmp_path):
    own = tmp_path / "own.json"
    text = Profile("Own", (Target("mrr", target=0.6),)).to_json()
    own.write_text(text)
    refused = gate([2] * 20, [1] * 20, "--profile", own, "--out", own)
    assert refused.code == 2
    assert "would destroy it" in refused.err
    assert own.read_text() == text


def test_what_is_typed_goes_before_the_profile(gate):
    failed = gate([2] * 20, [1] * 14 + [4] * 6, "--profile", "faq", "--min", "mrr=0.5")
    assert failed.code == 1
    assert "pass    MRR, at least 0.5" in failed.out
    assert "MRR, at least 0.85" not in failed.out
    assert "FAIL    Hit@3, at least 0.9" in failed.out
    # A limit that was typed is one that is meant.
    typed = gate([2] * 20, [1] * 20, "--min", "precision@3=0.8")
    assert typed.code == 1
    assert gate([2] * 20, [1] * 20, "--profile", "shop").code == 2


def test_it_fails_with_exit_code_1_and_the_reasons(gate, tmp_path):
    failed = gate(
        [2] * 20, [1] * 14 + [4] * 6, "--min", "mrr@10=0.76", "hit@1=0.9",
        "--min-gain", "mrr@10=0.0", "--max-hurt", "mrr@10=0.2",
        "--max", "p95_ms=100", "failed=0", "--timings", timings(tmp_path, [120.0] * 20),
    )  # fmt: skip
    assert failed.code == 1
    assert failed.out.startswith("Failed: up against base. Not met: 4 of 6.")
    assert (
        "- MRR@10, at least 0.76: it was 0.7750, but with 95% confidence it is only at least 0.6"
        in failed.out
    )
    assert "- Hit@1, at least 0.9: it was 0.7000." in failed.out
    assert "- MRR@10, queries hurt, at most 20%: it was 30.0%." in failed.out
    assert "- p95 latency, at most 100 ms: it was 120 ms." in failed.out
    assert "gain, at least 0:" not in failed.out


def test_a_value_just_under_the_limit_is_not_shown_as_the_limit(gate):
    failed = gate([2] * 10, [2] * 10, "--min", "mrr@10=0.500001")
    assert failed.code == 1
    assert "it was 0.5000." not in failed.out
    assert gate([2] * 10, [2] * 10, "--min", "mrr@10=0.5").code == 0


def test_a_limit_is_shown_as_it_was_given(gate, tmp_path):
    passed = gate(
        [2] * 10, [2] * 10, "--max", "p95_ms=2000000", "--min-gain", "mrr@10=-0.00001",
        "--timings", timings(tmp_path, [120.0] * 10),
    )  # fmt: skip
    stated = [re.split(" {2,}", line.strip())[1] for line in passed.out.splitlines()[2:5]]
    assert stated == [
        "condition",
        "MRR@10 gain, at least -0.00001",
        "p95 latency, at most 2000000 ms",
    ]


def test_fewer_than_six_queries_do_not_pass(gate):
    failed = gate([2] * 5, [1] * 5, "--min-gain", "mrr@10=0")
    assert failed.code == 1
    assert "only 5 queries have a value, and at least 6 are needed. Add labelled" in failed.out


def test_failed_queries_leave_both_sides_and_missing_ones_count_0(gate, tmp_path):
    places = [None] * 3 + [1] * 20
    options = ("--min", "mrr@10=0.99", "--max-hurt", "0")
    failed = gate([2] * 23, places, *options)
    assert failed.code == 1
    assert "up lacks 3 queries, which count 0 in MRR@10." in failed.out
    file = timings(tmp_path, ["failed"] * 3 + [10.0] * 20)
    known = gate([2] * 23, places, *options, "--max", "p95_ms=50", "--timings", file)
    assert known.code == 0, known.out
    assert "Excluded on both sides for MRR@10: 3 failed." in known.out
    # They are no reason to warn of queries that count 0.
    assert known.err == ""
    limited = gate([2] * 23, places, "--max", "failed=2", "--timings", file)
    assert limited.code == 1
    assert "- failed queries, at most 2: it was 3." in limited.out


def test_latencies_may_be_missing_and_come_from_a_named_column(gate, tmp_path):
    file = tmp_path / "times.csv"
    rows = "".join(f"q{i},{'' if i % 2 else 40},{'NaN' if i % 4 else 90}\n" for i in range(20))
    file.write_text("query_id,wall,cpu\n" + rows)
    options = ("--max", "p95_ms=50", "--timings", file, "--latency-column")
    passed = gate([1] * 20, [1] * 20, *options, "wall")
    assert passed.code == 0
    assert "10 queries have no latency and are in no quantile." in passed.out
    assert gate([1] * 20, [1] * 20, *options, "cpu").code == 1
    file.write_text("query_id,wall,cpu\n" + "".join(f"q{i},NaN,1\n" for i in range(20)))
    unknown = gate([1] * 20, [1] * 20, *options, "wall")
    assert unknown.code == 1
    assert "no query has a latency, so nothing is known" in unknown.out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "State at least one, such as --min ndcg@10=0.8."),
        (("--min", "ndgc@10=0.8"), "ndcg"),
        (("--min", "ndcg@10"), "For example: --min ndcg@10=0.5"),
        (("--max", "p95_ms=500"), "rerank --timings"),
        (("--min", "ndcg@10=0.8", "--confidence", "0.4"), "between 0.75 and 0.9999"),
        (("--min", "ndcg@10=0.8", "--timings", "nowhere.csv"), "nowhere.csv"),
        (("--min", "ndcg@10=0.8", "--challenger", "nowhere.trec"), "nowhere.trec"),
        (("--min", "ndcg@10=0.8", "--out", "nowhere/gate.md"), "Create it first"),
        (("--min", "ndcg@10=0.8", "--format", "html"), "gate --help"),
    ],
)
def test_what_could_not_run_is_exit_code_2_with_a_line_and_a_remedy(gate, options, told):
    refused = gate([2] * 20, [1] * 20, *options)
    assert refused.code == 2
    assert refused.out == ""
    assert refused.err.startswith("error: ")
    assert refused.err.count("\n") == 1
    assert told in refused.err
    assert "Traceback" not in refused.err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("query_id,seconds\nq0,1\nq1,2\n", "Its columns: query_id, seconds."),
        ("query_id,latency_ms\nq0,1\nq1,fast\nq2,3\n", "line 3: 'fast' is not a latency."),
        ("query_id,latency_ms\nq0,1\nq1,-2\nq2,3\n", "line 3: '-2' is not a latency."),
        ("query_id,latency_ms\nq0,1\nq1,inf\nq2,3\n", "line 3: 'inf' is not a latency."),
        ("query_id,state,latency_ms\nq0,done,1\nq1,lost,2\n", "line 3: 'lost' is no state"),
        ("query_id,latency_ms\nother1,1\nother2,2\n", "None of the queries that were timed"),
        ("", "empty"),
        ("not a table", "form of the file"),
    ],
)
def test_timings_that_cannot_be_trusted_stop_it(gate, tmp_path, content, told):
    file = tmp_path / "times.csv"
    file.write_text(content)
    refused = gate([2] * 9, [1] * 9, "--max", "p95_ms=5", "--timings", file)
    assert refused.code == 2
    assert "times.csv" in refused.err
    assert told in refused.err


def test_it_writes_over_none_of_its_inputs(gate, tmp_path):
    before = gate([2] * 9, [1] * 9, "--min", "mrr@10=0.5")
    assert before.code == 0
    refused = gate([2] * 9, [1] * 9, "--min", "mrr@10=0.5", "--out", tmp_path / "up.trec")
    assert refused.code == 2
    assert "would destroy it" in refused.err


def test_junit_holds_a_case_for_each_condition(gate, tmp_path):
    out = tmp_path / "gate.xml"
    hostile = "<up> & ]]>\x07 “x”"
    failed = gate(
        [2] * 20, [1] * 10 + [3] * 10, "--min", "mrr@10=0.2", "--max-hurt", "0.1",
        "--format", "junit", "--out", out, name=hostile,
    )  # fmt: skip
    assert failed.code == 1
    # The screen gets a text all the same.
    assert failed.out.startswith("Failed: ")
    root = ElementTree.fromstring(out.read_bytes())
    assert root.tag == "testsuites"
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    assert suite.get("name") == r"<up> & ]]>\x07 “x” against base"
    first, second = suite.findall("testcase")
    assert (first.get("classname"), first.get("name")) == ("rankdash.gate", "MRR@10, at least 0.2")
    assert first.find("failure") is None
    failure = second.find("failure")
    assert failure.get("type") == "missed"
    assert failure.get("message") == failure.text == "It was 50.0%."
    assert gate([2] * 20, [1] * 20, "--min", "mrr@10=0.2", "--format", "junit").out.startswith(
        '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites'
    )


def test_nothing_in_markdown_is_markup_but_ours(gate):
    hostile = "a|b`<img src=x>_*[x](y)"
    failed = gate(
        [2] * 20, [3] * 20, "--min", "mrr@10=0.9", "--format", "markdown",
        name=hostile.replace("/", ""),
    )  # fmt: skip
    assert failed.code == 1
    assert failed.out.startswith(
        r"## Failed: a\|b\`\<img src=x\>\_\*\[x\]\(y\) against base. Not met: 1 of 1."
    )
    rows = [line for line in failed.out.splitlines() if line.startswith("|")]
    assert len(rows) == 3
    assert all(row.count("|") == 7 for row in rows)
    assert rows[2].startswith("| ❌ **fail** | MRR@10, at least 0.9 | 0.3333 | no spread |")


def test_several_files_are_each_written_as_their_ending_says(gate, tmp_path):
    names = ("gate.md", "gate.XML", "gate.txt", "summary")
    out = [text for name in names for text in ("--out", tmp_path / name)]
    options = ("--min", "mrr@10=0.5", "--format", "markdown")
    passed = gate([2] * 20, [1] * 20, *options, *out)
    written = {name: (tmp_path / name).read_text(encoding="utf-8") for name in names}
    assert written["gate.md"] == written["summary"]
    assert written["gate.md"].startswith("## Passed: ")
    assert written["gate.XML"].startswith("<?xml")
    assert written["gate.txt"] == passed.out


@pytest.mark.parametrize("name", ["times.csv", "times.json"])
def test_it_reads_what_rerank_writes(run, tmp_path, name):
    made = run(
        "rerank", "--data", SAMPLE, "--reranker", "bm25", "--depth", "20",
        "--out", tmp_path / "bm25.trec", "--timings", tmp_path / name,
    )  # fmt: skip
    assert made.code == 0, made.err
    passed = run(
        "gate", "--qrels", SAMPLE / "qrels.tsv", "--baseline", SAMPLE / "initial.trec",
        "--challenger", tmp_path / "bm25.trec", "--min", "ndcg@10=0.5",
        "--max", "p95_ms=10000", "failed=0", "--timings", tmp_path / name,
    )  # fmt: skip
    assert passed.code == 0, passed.out + passed.err
    row = next(line for line in passed.out.splitlines() if "failed queries" in line)
    assert row.split()[-1] == "168"


def test_rerank_refuses_timings_where_they_would_destroy_something(run, tmp_path):
    options = ("rerank", "--data", SAMPLE, "--reranker", "bm25", "--out", tmp_path / "a.trec")
    same = run(*options, "--timings", tmp_path / "a.trec")
    assert (same.code, "one file" in same.err) == (2, True)
    data = run(*options, "--timings", SAMPLE / "qrels.tsv")
    assert (data.code, "would destroy it" in data.err) == (2, True)
    assert not (tmp_path / "a.trec").exists()


def test_the_commands_of_the_docs_run(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain, with_files = commands(DOCS / "ci.md")
    initial = (SAMPLE / "initial.trec").read_text(encoding="utf-8")
    Path("qrels.tsv").write_bytes((SAMPLE / "qrels.tsv").read_bytes())
    Path("main.trec").write_text(initial, encoding="utf-8")
    rows = (SAMPLE / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]
    ideal = [f"{q} Q0 {d} 1 {label} ideal" for q, d, label in map(str.split, rows)]
    queries = dict.fromkeys(row.split()[0] for row in rows)
    Path("branch.json").write_text(
        json.dumps([{"query_id": query, "latency_ms": 80.0} for query in queries])
    )
    for content, code in (("\n".join(ideal), 0), (initial, 1)):
        Path("branch.trec").write_text(content, encoding="utf-8")
        assert run(*plain).code == code
        told = run(*with_files)
        assert told.code == code
        summary = Path("gate.md").read_text(encoding="utf-8")
        assert summary.startswith("## " + told.out.split(":")[0])
        (suite,) = ElementTree.fromstring(Path("gate.xml").read_bytes())
        assert (suite.get("failures") == "0") == (code == 0)


def test_what_could_not_run_says_so_in_every_file_but_never_in_the_data(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels, runs = SAMPLE / "qrels.tsv", (SAMPLE / "initial.trec").read_bytes()
    Path("main.trec").write_bytes(runs)
    Path("broken.trec").write_text("<b>not a run</b>\n")
    outs = ("summary.md", "gate.xml", "gate.txt", "main.trec")
    flags = [flag for out in outs for flag in ("--out", out)]
    sides = ("--baseline", "main.trec", "--challenger", "broken.trec")
    done = run("gate", "--qrels", labels, *sides, "--min", "ndcg@10=0.5", *flags)
    assert done.code == 2
    assert Path("main.trec").read_bytes() == runs
    assert "could not run" in Path("summary.md").read_text()
    assert "<b>" not in Path("summary.md").read_text()
    (suite,) = ElementTree.parse("gate.xml").getroot()
    assert suite.get("errors") == "1" and suite[0][0].tag == "error"
    for out in ("summary.md", "gate.txt"):
        assert "main.trec" in Path(out).read_text()


# The ranks of the relevant document of forty queries, 4 before: p is 0.03 on one side and 0.06 on
# both.
BY_ONE_SIDE = [3] * 12 + [5] * 8 + [4] * 20


@pytest.mark.parametrize(
    ("base", "up", "limit", "code", "kind", "differs"),
    [
        # One-sided it passes, two-sided it is not proven.
        ([4] * 40, BY_ONE_SIDE, "0", 0, "unproven", True),
        # A loss is tolerated, so that what is not proven is no contradiction.
        ([4] * 40, BY_ONE_SIDE, "-0.1", 0, "unproven", False),
        ([4] * 12, [1] * 12, "0", 0, "better", False),
        # A gain that is proven may be less than the limit.
        ([4] * 12, [1] * 12, "0.9", 1, "better", False),
        ([4] * 12, [5] * 12, "-0.3", 0, "worse", True),
        ([4] * 12, [5] * 12, "0", 1, "worse", False),
        ([4] * 12, [4] * 12, "0", 0, "identical", False),
    ],
)
def test_it_names_the_verdict_of_compare_if_they_differ(
    run, gate, tmp_path, base, up, limit, code, kind, differs
):
    found = gate(base, up, "--min-gain", f"mrr={limit}", "--format", "json")
    assert found.code == code
    [condition] = found.json["conditions"]
    compared = run(
        "compare", "--qrels", tmp_path / "labels.qrels", "--baseline", tmp_path / "base.trec",
        "--challenger", tmp_path / "up.trec", "--metrics", "mrr", "--format", "json",
    )  # fmt: skip
    assert compared.json["headline"]["up"]["kind"] == condition["compare"] == kind
    notes = [each for each in found.json["notes"] if "compare reports" in each]
    assert bool(notes) is differs
    for form in ("text", "markdown", "junit"):
        written = gate(base, up, "--min-gain", f"mrr={limit}", "--format", form).out
        assert ("compare reports" in written) is differs
    if differs:
        assert f"“{TITLES[kind]}”. It is two-sided at 95% confidence" in notes[0]
