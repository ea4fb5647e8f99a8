"""`rerank --shard` and `merge`: the merged shards equal the run of one machine. Parts that cannot
be merged are in `approved/cli/rerank.txt`."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sets import SAMPLE

QUERIES = 9
pytestmark = pytest.mark.usefixtures("no_plugin_stays")

# Longer documents are better.
PLUGIN = """\
import numpy as np
from rankdash.core.rerankers import Capabilities, RerankerKind, Scored

class Longest:
    name, settings = "longest", {}
    def prepare(self, corpus): pass
    def fingerprint(self): return "longest"
    def score(self, requests):
        return [Scored(np.array([len(text) / 7 for text in each.documents])) for each in requests]

KIND = RerankerKind(
    name="longest", title="Longest", meaning="Longer is better.", settings=(),
    capabilities=Capabilities(across_queries=True), build=lambda settings: Longest(),
)
"""


@pytest.fixture
def queries(tmp_path: Path) -> list[str]:
    """Nine queries, in an order that no sorting gives, with six documents each in `shop`."""
    folder = tmp_path / "shop"
    folder.mkdir()
    rng = random.Random(5)
    ids = [f"q{place}" for place in range(QUERIES)]
    rng.shuffle(ids)
    words = ["return", "gift", "card", "parking", "opening", "hours", "history", "jobs", "pay"]
    rows = [
        {"query_id": query, "query": text, "doc_id": f"{query}-{place}",
         "document": " ".join(rng.choices(words, k=rng.randint(2, 9))), "label": place % 2,
         "first_stage_score": 9.0 - place}
        for query in ids
        for text in [" ".join(rng.sample(words, 3))]
        for place in range(6)
    ]  # fmt: skip
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return ids


@pytest.fixture
def made(run: Callable, queries: list[str], tmp_path: Path) -> Callable[..., Path]:
    """The file of a shard or of the whole run."""

    def make(name: str, *options: object, reranker: str = "bm25") -> Path:
        out = tmp_path / name
        source = ("--data", tmp_path / "shop", "--reranker", reranker, "--out", out)
        done = run("rerank", *source, *options)
        assert done.code == 0, done.err
        return out

    return make


@pytest.fixture
def longest(tmp_path: Path) -> tuple[object, ...]:
    """The option for a reranker that takes queries together."""
    plugin = tmp_path / "longest.py"
    plugin.write_text(PLUGIN)
    return "--plugin", plugin


def parts(made: Callable, count: int, *options: object, **named: object) -> list[Path]:
    return [made(f"{count}-{number}.part", "--shard", f"{number}/{count}", *options, **named)
            for number in range(1, count + 1)]  # fmt: skip


@pytest.mark.parametrize("count", [1, 10])
def test_the_parts_make_the_run_of_one_machine(run, made, tmp_path, count):
    one, merged = made("one.trec", "--depth", "4"), tmp_path / "merged.trec"
    files = parts(made, count, "--depth", "4")
    random.Random(count).shuffle(files)
    outcome = run("merge", *files, "--out", merged)
    assert outcome.code == 0
    assert f"{QUERIES} queries reranked, 0 failed" in outcome.err
    assert merged.read_bytes() == one.read_bytes()
    assert run("merge", *files, "--out", "-").out == one.read_text()


def test_a_part_that_is_cut_off_or_changed_is_refused_and_timings_are_merged(
    run, made, queries, tmp_path, longest
):
    files, out = parts(made, 2, "--repeats", "3", *longest, reranker="longest"), tmp_path / "m.trec"
    for name in ("timings.json", "timings.csv"):
        assert run("merge", *files, "--out", out, "--timings", tmp_path / name).code == 0
    rows = json.loads((tmp_path / "timings.json").read_text())
    assert [row["query_id"] for row in rows] == queries
    for row in rows:
        repeats = sorted(row[f"repeat_{place}_ms"] for place in (1, 2, 3))
        assert row["latency_ms"] == repeats[1] > 0
        assert (row["state"], row["pairs"]) == ("done", 6)
    assert len((tmp_path / "timings.csv").read_text().splitlines()) == QUERIES + 1
    out.write_text("before")
    whole = files[1].read_bytes()
    head, *lines = whole.splitlines(keepends=True)
    cut = [head + b"".join(lines[:-1]), whole + lines[-1], whole[:-3],
           head + b"".join([*lines[1:], lines[0]])]  # fmt: skip
    none = [b"", b"".join(lines), whole[:40], b"# rankdash shard {}\n"]
    for said, contents in (
        (": The shard file was changed or truncated", cut),
        (", line 1: This is not a shard file", none),
    ):
        for content in contents:
            files[1].write_bytes(content)
            outcome = run("merge", *files, "--out", out)
            assert outcome.code == 2
            assert f"{files[1]}{said}" in outcome.err
            assert out.read_text() == "before"


@pytest.mark.model
@pytest.mark.parametrize(
    ("reranker", "depth"),
    [pytest.param("bi-encoder", 9, marks=pytest.mark.thorough), ("cross-encoder", 3)],
)
def test_a_model_scores_alike_in_every_part(run, tmp_path, monkeypatch, reranker, depth):
    """Each part runs on a separate machine, without the vectors cached by the others."""
    machines = Path(os.environ["RANKDASH_CACHE"])
    for name in ("models", "packaged"):
        (machines / name).mkdir(parents=True, exist_ok=True)
    folder = tmp_path / "sample"
    folder.mkdir()
    for name in ("corpus.jsonl", "qrels.tsv", "queries.jsonl"):
        (folder / name).write_bytes((SAMPLE / name).read_bytes())
    kept = [f"q{place:02d}" for place in range(1, 8)]
    first = (SAMPLE / "initial.trec").read_text().splitlines(keepends=True)
    (folder / "initial.trec").write_text("".join(each for each in first if each[:3] in kept))

    def made(name: str, *options: str) -> Path:
        cache = tmp_path / f"cache-{name}"
        cache.mkdir()
        # Every machine makes the same export of the model.
        for each in ("models", "packaged"):
            (cache / each).symlink_to(machines / each)
        monkeypatch.setenv("RANKDASH_CACHE", str(cache))
        out = tmp_path / name
        done = run(
            "rerank", "--data", folder, "--reranker", reranker, "--depth", depth,
            *options, "--out", out,
        )  # fmt: skip
        assert done.code == 0, done.err
        return out

    merged = {}
    for count in (1, 2):
        shards = [f"{number}/{count}" for number in range(1, count + 1)]
        files = [made(shard.replace("/", "-of-"), "--shard", shard) for shard in shards]
        merged[count] = run("merge", *files, "--out", "-").out
    assert merged[1] == merged[2]
    alone = made("alone", "--set", "runtime=onnx", "--set", "batch_tokens=1")
    assert alone.read_text() == merged[2]
    assert len(merged[1].splitlines()) == sum(each[:3] in kept for each in first)
