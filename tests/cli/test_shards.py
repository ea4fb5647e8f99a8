"""`rerank --shard` and `merge`: the parts of a run make the run that one machine makes."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parents[2] / "assets" / "samples" / "helpcentre"
SHARDS = 16
pytestmark = pytest.mark.usefixtures("no_plugin_stays")

# Longer documents are better. It stops for good at the query that a file names, and says so.
PLUGIN = """\
import os, time
from pathlib import Path
import numpy as np
from rankdash.rerankers import Capabilities, RerankerKind, Scored

class Longest:
    name, settings = "longest", {}
    def prepare(self, corpus): pass
    def fingerprint(self): return "longest"
    def score(self, requests):
        for request in requests:
            stop = Path(os.environ.get("STOPPED", "none"))
            if stop.is_file() and stop.read_text() == request.query_id:
                stop.with_suffix(".reached").touch()
                time.sleep(600)
        return [Scored(np.array([len(text) / 7 for text in each.documents])) for each in requests]

KIND = RerankerKind(
    name="longest", title="Longest", meaning="Longer is better.", settings=(),
    capabilities=Capabilities(), build=lambda settings: Longest(),
)
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Thirty-five queries, of which one has no candidates, in an order that no sorting gives."""
    folder = tmp_path / "shop"
    folder.mkdir()
    rng = random.Random(5)
    queries = [f"q{place}" for place in range(35)]
    rng.shuffle(queries)
    words = ["return", "gift", "card", "parking", "opening", "hours", "history", "jobs", "pay"]
    rows = []
    for query in queries:
        text = " ".join(rng.sample(words, 3))
        for place in range(6):
            document = " ".join(rng.choices(words, k=rng.randint(2, 9)))
            rows.append((query, text, f"{query}-{place}", document, place % 2, 9.0 - place))
    names = ("query_id", "query", "doc_id", "document", "label", "first_stage_score")
    (folder / "rows.jsonl").write_text(
        "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    )
    return folder


def parts_of(
    run: Callable, data: Path, folder: Path, count: int, *options: object, reranker: str = "bm25"
) -> list[Path]:
    files = [folder / f"{count}-{number}.part" for number in range(1, count + 1)]
    for number, file in enumerate(files, 1):
        done = run(
            "rerank", "--data", data, "--reranker", reranker, "--shard", f"{number}/{count}",
            "--out", file, *options,
        )  # fmt: skip
        assert done.code == 0, done.err
    return files


@pytest.mark.parametrize("count", [1, 3, 40])
def test_the_parts_make_the_run_of_one_machine(
    run: Callable, data: Path, tmp_path: Path, count: int
):
    one, merged = tmp_path / "one.trec", tmp_path / "merged.trec"
    depth = ("--depth", "4")
    assert run("rerank", "--data", data, "--reranker", "bm25", "--out", one, *depth).code == 0
    files = parts_of(run, data, tmp_path, count, *depth)
    random.Random(count).shuffle(files)
    outcome = run("merge", *files, "--out", merged)
    assert outcome.code == 0
    assert "35 queries reranked, 0 failed" in outcome.err
    assert merged.read_bytes() == one.read_bytes()
    assert run("merge", *files, "--out", "-").out == one.read_text()


def queries_of(data: Path) -> list[str]:
    lines = (data / "rows.jsonl").read_text().splitlines()
    return [json.loads(line)["query_id"] for line in lines][::6]


def started(data: Path, out: Path, plugin: Path, shard: str, stop: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "rankdash", "rerank", "--data", data, "--plugin", plugin]
    return subprocess.Popen(
        [*map(str, command), "--reranker", "longest", "--out", str(out), "--shard", shard],
        env={**os.environ, "STOPPED": str(stop)},
        stderr=subprocess.DEVNULL,
    )


def test_parts_that_were_killed_and_started_again(run: Callable, data: Path, tmp_path: Path):
    plugin = tmp_path / "longest.py"
    plugin.write_text(PLUGIN)
    options = ("--plugin", plugin)
    files = parts_of(run, data, tmp_path, SHARDS, *options, reranker="longest")
    queries = queries_of(data)
    for number in random.Random(3).sample(range(1, SHARDS + 1), 3):
        out, stop = files[number - 1], tmp_path / f"stop{number}"
        before = out.read_bytes() if number % 2 else None
        if before is None:
            out.unlink()
        # In the middle of the shard: its second query.
        stop.write_text(queries[number - 1 + SHARDS])
        process = started(data, out, plugin, f"{number}/{SHARDS}", stop)
        try:
            while not stop.with_suffix(".reached").exists():
                assert process.poll() is None
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
        finally:
            process.kill()
            process.wait()
        assert (out.read_bytes() if out.exists() else None) == before
        stop.unlink()
        again = run(
            "rerank", "--data", data, "--reranker", "longest", "--shard", f"{number}/{SHARDS}",
            "--out", out, *options,
        )  # fmt: skip
        assert again.code == 0, again.err
    one, merged = tmp_path / "one.trec", tmp_path / "merged.trec"
    run("rerank", "--data", data, "--reranker", "longest", "--out", one, *options)
    assert run("merge", *files, "--out", merged).code == 0
    assert merged.read_bytes() == one.read_bytes()


@pytest.mark.model
@pytest.mark.parametrize(("reranker", "depth"), [("bi-encoder", 9), ("cross-encoder", 3)])
def test_a_model_scores_alike_in_every_part(
    run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reranker: str, depth: int
):
    """Each part is made on a machine of its own, which keeps no vectors of the others."""
    machines = Path(os.environ["RANKDASH_CACHE"])
    for name in ("models", "packaged"):
        (machines / name).mkdir(parents=True, exist_ok=True)
    folder = tmp_path / "sample"
    folder.mkdir()
    for name in ("corpus.jsonl", "initial.trec", "qrels.tsv", "queries.jsonl"):
        (folder / name).write_bytes((SAMPLE / name).read_bytes())
    kept = [f"q{place:02d}" for place in range(1, 8)]
    first = (folder / "initial.trec").read_text().splitlines(keepends=True)
    (folder / "initial.trec").write_text("".join(each for each in first if each[:3] in kept))

    def made(name: str, *options: str) -> Path:
        cache = tmp_path / f"cache-{name}"
        cache.mkdir()
        # Every machine converts and exports the same.
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
    for count in (1, 3):
        shards = [f"{number}/{count}" for number in range(1, count + 1)]
        parts = [made(shard.replace("/", "-of-"), "--shard", shard) for shard in shards]
        merged[count] = run("merge", *parts, "--out", "-").out
    assert merged[1] == merged[3]
    alone = made("alone", "--set", "runtime=onnx", "--set", "batch_tokens=1")
    assert alone.read_text() == merged[3]
    assert len(merged[1].splitlines()) == sum(each[:3] in kept for each in first)


def test_timings_are_merged_too(run: Callable, data: Path, tmp_path: Path):
    files = parts_of(run, data, tmp_path, 4, "--repeats", "3")
    for name in ("timings.json", "timings.csv"):
        done = run("merge", *files, "--out", tmp_path / "m.trec", "--timings", tmp_path / name)
        assert done.code == 0
    rows = json.loads((tmp_path / "timings.json").read_text())
    order = queries_of(data)
    assert [row["query_id"] for row in rows] == order
    for row in rows:
        repeats = sorted(row[f"repeat_{place}_ms"] for place in (1, 2, 3))
        assert row["latency_ms"] == repeats[1] > 0
        assert (row["state"], row["pairs"]) == ("done", 6)
    assert len((tmp_path / "timings.csv").read_text().splitlines()) == 36


def test_a_query_that_fails_in_its_part_is_named(run: Callable, data: Path, tmp_path: Path):
    plugin = tmp_path / "failing.py"
    plugin.write_text(
        PLUGIN.replace("longest", "failing").replace(
            "        for request in requests:\n",
            "        for request in requests:\n"
            '            if request.query_id == "q7": raise ValueError("no")\n',
        )
    )
    files = []
    # In a part of its own, nothing else has a result.
    for number in range(1, 36):
        out = tmp_path / f"{number}.part"
        files.append(out)
        done = run(
            "rerank", "--data", data, "--reranker", "failing", "--plugin", plugin,
            "--shard", f"{number}/35", "--out", out,
        )  # fmt: skip
        assert done.code == (1 if "failed: query q7" in done.err else 0)
    outcome = run("merge", *files, "--out", tmp_path / "m.trec")
    assert outcome.code == 1
    assert "failed: query q7: ValueError: no" in outcome.err
    assert "34 queries reranked, 1 failed" in outcome.err
    assert "q7 " not in (tmp_path / "m.trec").read_text()


def refused(run: Callable, files: Sequence[Path], out: Path) -> str:
    out.write_text("before")
    outcome = run("merge", *files, "--out", out)
    assert outcome.code == 2
    assert out.read_text() == "before"
    return outcome.err


def test_parts_that_do_not_belong_together_are_refused(run: Callable, data: Path, tmp_path: Path):
    out = tmp_path / "merged.trec"
    files = parts_of(run, data, tmp_path, 5)
    said = refused(run, [files[0], *files[2:4]], out)
    assert "Of the 5 shards these are missing: 2, 5." in said
    twice = tmp_path / "copy.part"
    twice.write_bytes(files[1].read_bytes())
    said = refused(run, [*files, twice], out)
    assert re.search(rf"{twice}: Shard 2 is given twice: it is in {files[1]} too", said)

    def other(name: str, *options: object, reranker: str = "bm25") -> str:
        made = tmp_path / name
        run(
            "rerank", "--data", data, "--reranker", reranker, "--shard", "2/5", "--out", made,
            *options,
        )  # fmt: skip
        said = refused(run, [files[0], made, *files[2:]], out)
        assert said.startswith(f"error: {made}: ")
        return said

    assert "of other settings (k1)" in other("k1.part", "--set", "k1=2")
    assert "of another depth" in other("depth.part", "--depth", "3")
    assert "of another number of shards" in refused(
        run, [*files[1:], parts_of(run, data, tmp_path, 2)[0]], out
    )
    rows = (data / "rows.jsonl").read_text()
    (data / "rows.jsonl").write_text(rows.replace("9.0", "0.5", 1))
    assert "of another first stage" in other("first.part")
    (data / "rows.jsonl").write_text(rows.replace("gift", "present", 1))
    assert "of other data" in other("text.part")


def test_a_part_that_is_cut_off_or_changed_is_refused(run: Callable, data: Path, tmp_path: Path):
    files = parts_of(run, data, tmp_path, 2)
    whole, out = files[1].read_bytes(), tmp_path / "merged.trec"
    lines = whole.splitlines(keepends=True)
    changed = [
        b"".join(lines[:-1]),
        whole + lines[-1],
        b"".join([lines[0], *lines[2:], lines[1]]),
        whole[:-3],
    ]
    for content in changed:
        files[1].write_bytes(content)
        said = refused(run, files, out)
        assert f"{files[1]}: The file of the shard was changed or cut off" in said
    for content in (b"", b"".join(lines[1:]), whole[:40], b"# rankdash shard {}\n"):
        files[1].write_bytes(content)
        assert f"{files[1]}, line 1: This is no file of a shard" in refused(run, files, out)


@pytest.mark.parametrize("shard", ["0/4", "5/4", "3", "a/b", "1/0", "-1/4", "1/9999999"])
def test_a_shard_that_is_none(run: Callable, data: Path, tmp_path: Path, shard: str):
    outcome = run(
        "rerank", "--data", data, "--reranker", "bm25", f"--shard={shard}", "--out",
        tmp_path / "a.part",
    )  # fmt: skip
    assert outcome.code == 2
    assert "such as 3/16" in outcome.err
    assert not (tmp_path / "a.part").exists()
