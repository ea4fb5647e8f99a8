"""Files larger than the memory: split by query, with the same numbers as the whole file."""

import gzip
import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rankdash.app.command import main
from rankdash.core.base.errors import SpecError
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.metrics import Conventions, parse_measure, registry
from rankdash.core.readers.formats import trec
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study import large
from rankdash.core.study.systems import FIRST_STAGE

GRADED = (-1, 0, 0, 1, 2, 3)
SIDES = ("--qrels", "--baseline", "--challenger")
SPECS = [f"{name}@5" if registry[name].has_cutoff else name for name in sorted(registry)]
FEW = ("--resamples", "200")
# Metrics that need all labels together.
WHOLE = ("err", "map_graded", "map_graded_norm")


@pytest.fixture(autouse=True)
def in_pieces(monkeypatch: pytest.MonkeyPatch):
    """Split into pieces of some tens of queries, and blocks of some lines."""
    monkeypatch.setattr(large, "LARGE_BYTES", 0)
    monkeypatch.setattr(trec, "PIECE_BYTES", 20_000)
    monkeypatch.setattr(trec, "BLOCK_BYTES", 3_000)


def lines_of(rng: random.Random, queries: int, runs: int = 2) -> list[list[str]]:
    """Return lines of labels and runs. Some queries are in no ranking, some have no labels, some
    scores are tied, and some labels are below 0."""
    labels, *made = [[] for _ in range(runs + 1)]
    for query in rng.sample(range(1000, 9999), queries):
        docs = rng.sample(range(500), 12)
        if rng.random() < 0.9:
            labels += [f"q{query} 0 d{doc} {rng.choice(GRADED)}" for doc in docs[::2]]
        for run in made:
            if rng.random() < 0.9:
                run += [
                    f"q{query} Q0 d{doc} {rank} {rng.choice([rank, 5, 10 / rank])} x"
                    for rank, doc in enumerate(rng.sample(docs, rng.choice([10, 5])), 1)
                ]
    return [labels, *made]


def in_order(rng: random.Random, order: str, files: list[list[str]]) -> None:
    for lines in files if order == "shuffled" else files[1:] if order == "by score" else ():
        rng.shuffle(lines)
    if order == "by score":
        files[1].sort(key=lambda line: -float(line.split()[4]))


def write(folder: Path, *files: list[str], end: str = "\n") -> list[Path]:
    """Write labels, then runs."""
    made = [folder / f"{name}.txt" for name in ("labels", "first", "second", "third", "fourth")]
    for path, lines in zip(made, files, strict=False):
        path.write_bytes("".join(f"{line}{end}" for line in lines).encode())
    return made[: len(files)]


def compared(paths: list[Path]) -> list[object]:
    """Return the arguments of a comparison of labels, a baseline and challengers."""
    sides = [part for pair in zip(SIDES, paths, strict=False) for part in pair]
    return [*sides, *paths[3:]]


# Files that are read in pieces have no certificate.
_CERTIFICATE = re.compile(r'(?<=^  "certificate": ).*', re.MULTILINE)


@pytest.fixture
def same(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Return a check that a command writes the same for pieces and for whole files."""

    def check(*asked: object, codes: tuple[int, ...] = (0,)) -> None:
        used: list[Path] = []

        def watched(path: Path, folder: Path, pieces: int) -> object:
            used.append(path)
            assert pieces > 2
            return trec.split(path, folder, pieces)

        said = []
        for name, value in (("split", watched), ("LARGE_BYTES", 10**12)):
            with monkeypatch.context() as patched:
                patched.setattr(large, name, value)
                assert main([*map(str, asked)]) in codes
            said.append(_CERTIFICATE.sub("null", capsys.readouterr().out))
        assert used
        assert said[0] == said[1]

    return check


ORDERS = (("by query", "trec_eval"), ("by score", "rankdash"), ("shuffled", "rankdash"))


@pytest.mark.parametrize(("order", "conventions"), ORDERS)
def test_the_numbers_are_those_of_the_whole(same, tmp_path, order, conventions):
    rng = random.Random(order + conventions)
    files = lines_of(rng, 300)
    in_order(rng, order, files)
    specs = ("--metric", "ndcg@10", "map", "mrr", "recall@5", "judged@10")
    form = ["--json"] if order != "by score" else ["--format", "csv", "--per-query"]
    same("evaluate", *write(tmp_path, *files), *form, "--conventions", conventions, *specs)


def test_every_metric_is_that_of_the_whole(same, tmp_path):
    """Metrics that need all labels are not evaluated in pieces, only compared. One piece contains
    the highest label."""
    labels, first, second = lines_of(random.Random("every"), 150)
    paths = write(tmp_path, [*labels, f"{labels[0].split()[0]} 0 d9999 9"], first, second)
    apart = [spec for spec in SPECS if spec.partition("@")[0] not in WHOLE]
    same("evaluate", *paths, "--json", "--metric", *apart)
    same("compare", *compared(paths), "--missing", "skip", "--json", "--metric", *SPECS, *FEW)
    files = large.LargeFiles(paths[0], {"first": paths[1]}, "highest", None)
    for name in WHOLE:
        assert large.evaluate_large(files, [parse_measure(name)], Conventions()) is None


@pytest.mark.parametrize(
    ("order", "conventions", "runs"), [("by score", "rankdash", 2), ("shuffled", "trec_eval", 4)]
)
def test_a_comparison_says_what_that_of_the_whole_says(same, tmp_path, order, conventions, runs):
    rng = random.Random(f"{order} {conventions} {runs}")
    files = lines_of(rng, 150, runs)
    in_order(rng, order, files)
    rules = ("--json", "--conventions", conventions, "--metric", "ndcg@10", "map", "judged@10")
    same("compare", *compared(write(tmp_path, *files)), *rules, *FEW)


@pytest.mark.parametrize(
    "asked",
    [
        ["--min", "ndcg@10=0.3", "--min-gain", "map=-0.2", "--max-hurt", "mrr@10=0.6",
         "--max", "failed=3"],
        ["--max", "p95_ms=3", "--profile", "faq"],
    ],
    ids=["conditions", "targets"],
)  # fmt: skip
def test_a_gate_decides_as_of_the_whole(same, tmp_path, asked):
    """Also with failed queries that the ranking contains."""
    rng = random.Random(asked[1])
    labels, first, second = lines_of(rng, 150)
    paths = write(tmp_path, labels, first, second)
    queries = sorted({line.split()[0] for line in [*labels, *second]})
    states = (rng.choice(["done", "done", "failed", "skipped"]) for _ in queries)
    rows = [f"{query},{state},5.0" for query, state in zip(queries, states, strict=True)]
    times = tmp_path / "times.csv"
    times.write_text("\n".join(["query_id,state,latency_ms", *rows]))
    same("gate", *compared(paths), "--timings", times, *asked, "--json", codes=(0, 1))


def packed(path: Path) -> Path:
    made = path.with_name(f"{path.name}.gz")
    # In two members, as `cat a.gz b.gz` makes them.
    half = len(content := path.read_bytes()) // 2
    made.write_bytes(gzip.compress(content[:half]) + gzip.compress(content[half:]))
    return made


@pytest.mark.parametrize("how", ["tabs and \\r\\n", "gzip"])
def test_a_file_may_be_written_in_other_ways(same, tmp_path, how):
    labels, first, second = lines_of(random.Random(how), 300)
    if how == "gzip":
        one, two, three = write(tmp_path, labels, first, second)
        same("compare", *compared([packed(one), two, packed(three)]), "--json", *FEW)
        return
    tabbed = [line.replace(" ", "\t") for line in second]
    paths = write(tmp_path, labels, first, tabbed, end="\r\n")
    paths[1].write_bytes(paths[1].read_bytes().rstrip())
    same("evaluate", *paths, "--json")


def test_what_is_odd_about_a_comparison_is_said_as_of_the_whole(capsys, monkeypatch, tmp_path):
    labels, first, second = lines_of(random.Random(8), 200)
    asked = compared(write(tmp_path, labels + labels[:40], first, second))
    said = []
    for size in (0, 10**12):
        monkeypatch.setattr(large, "LARGE_BYTES", size)
        assert main(["compare", *map(str, asked), *FEW]) == 0
        lines = capsys.readouterr().err.splitlines()
        # Line numbers and examples are only of a piece.
        assert size or not any(", line" in line for line in lines)
        said.append(
            sorted(re.sub(r", line \d+|, such as '\w+'| \(such as .*", "", each) for each in lines)
        )
    assert len(said[0]) == 5
    assert said[0] == said[1]
    assert any("repeat the label of a pair: 40." in line for line in said[0])


@pytest.mark.parametrize("where", [0, 1])
def test_an_uneven_file_is_read_as_a_whole(capsys, tmp_path, where):
    files = lines_of(random.Random(4), 200, 1)
    files[where].insert(len(files[where]) - 5, "only three fields")
    assert main(["evaluate", *map(str, write(tmp_path, *files)), "--json"]) == 0
    outcome = capsys.readouterr()
    assert f"line {len(files[where]) - 5}" in outcome.err
    assert json.loads(outcome.out)["systems"]["first"]["counts"]["queries"] > 100


@pytest.mark.parametrize("where", [1, 2])
def test_a_ranking_of_other_queries_is_refused(capsys, tmp_path, where):
    files = lines_of(random.Random(9), 150)
    files[where][:] = [f"x{line}" for line in files[where]]
    paths = write(tmp_path, *files)
    for asked in (["evaluate", paths[0], paths[where]], ["compare", *compared(paths), *FEW]):
        assert main([*map(str, asked)]) == 2
        assert f"{paths[where]}: Queries of the ranking" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("broken", "words", "block"),
    [
        (lambda content: content[: len(content) * 2 // 3], "gzip", 3_000),
        (lambda content: content[:300] + b"\0\0\0\0" + content[304:], "gzip", 3_000),
        (lambda content: gzip.compress(b"q1 0 d1 1\n" * 6_000_000), "200", 1_000_000),
    ],
)
def test_a_gzip_file_that_is_broken_or_a_bomb_is_refused(
    capsys, monkeypatch, tmp_path, broken: Callable[[bytes], bytes], words, block
):
    monkeypatch.setattr(trec, "BLOCK_BYTES", block)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    paths = write(tmp_path, *lines_of(random.Random(11), 200)[:2])
    made = packed(paths[0])
    made.write_bytes(broken(made.read_bytes()))
    assert main(["evaluate", str(made), str(paths[1])]) == 2
    said = capsys.readouterr().err
    assert f"error: {made.name}: " in said and words in said


def test_no_room_to_split_is_one_error_and_nothing_is_left_of_the_pieces(
    capsys, monkeypatch, tmp_path
):
    class Full:
        free = 10

    made = tmp_path / "made"
    made.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(made))
    paths = write(tmp_path, *lines_of(random.Random(6), 100))
    for asked in (["evaluate", *paths[:2]], ["compare", *compared(paths)]):
        assert main([*map(str, asked)]) == 0
        assert list(made.iterdir()) == []
    monkeypatch.setattr("shutil.disk_usage", lambda folder: Full)
    assert main(["evaluate", *map(str, paths[:2])]) == 2
    assert "set TMPDIR to another folder" in capsys.readouterr().err


def test_what_needs_documents_is_not_made_of_pieces(tmp_path):
    """A study of pieces has no rankings, so parts that need them raise an error."""
    labels, *runs = write(tmp_path, *lines_of(random.Random(10), 150))
    files = large.LargeFiles(labels, dict(zip(("first", "second"), runs, strict=True)),
                             "highest", None)  # fmt: skip
    found = large.study_large(
        files, "labels", "ndcg@10", [], Conventions(), StatisticsSettings.for_queries,
        lambda name, ranking, dataset: run_from_ranking(name, dataset.id, ranking, name),
    )  # fmt: skip
    assert found is not None
    study, _ = found
    with pytest.raises(KeyError):
        study.judged(FIRST_STAGE)
    other = replace(study, conventions=Conventions(score_precision="float32"))
    with pytest.raises(SpecError, match="joined under other conventions"):
        other.evaluate(FIRST_STAGE, ("map",))
