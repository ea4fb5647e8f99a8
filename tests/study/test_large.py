"""Files that memory cannot hold: split by query, and the same numbers as of the whole."""

import gzip
import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.cli.main import main
from rankdash.errors import SpecError
from rankdash.metrics import Conventions, parse_measure, registry
from rankdash.readers import split
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study import large
from rankdash.study.systems import FIRST_STAGE


@pytest.fixture(autouse=True)
def in_pieces(monkeypatch: pytest.MonkeyPatch):
    """Some tens of queries a piece, and some lines a block."""
    monkeypatch.setattr(large, "LARGE_BYTES", 0)
    monkeypatch.setattr(split, "PIECE_BYTES", 20_000)
    monkeypatch.setattr(split, "BLOCK_BYTES", 3_000)


def lines_of(
    rng: random.Random, queries: int, *, grades: tuple[int, ...] = (-1, 0, 0, 1, 2, 3)
) -> tuple[list[str], list[str], list[str]]:
    """Labels and two runs. Some queries are ranked nowhere, some have no labels, some scores are
    tied, and some labels are below 0."""
    labels, first, second = [], [], []
    for query in rng.sample(range(1000, 9999), queries):
        docs = rng.sample(range(500), 12)
        if rng.random() < 0.9:
            labels += [f"q{query} 0 d{doc} {rng.choice(grades)}" for doc in docs[::2]]
        for run in (first, second):
            if rng.random() < 0.9:
                run += ranked(rng, query, rng.sample(docs, 10))
    return labels, first, second


def ranked(rng: random.Random, query: int, docs: list[int]) -> list[str]:
    return [
        f"q{query} Q0 d{doc} {rank} {rng.choice([rank, 5, 10 / rank])} x"
        for rank, doc in enumerate(docs, 1)
    ]


def reordered(rng: random.Random, lines: list[str]) -> list[str]:
    """The same documents in another order, of most queries."""
    lists: dict[str, list[int]] = {}
    for line in lines:
        query, _, doc, *_ = line.split()
        lists.setdefault(query, []).append(int(doc[1:]))
    return [
        line
        for query, docs in lists.items()
        if rng.random() < 0.9
        for line in ranked(rng, int(query[1:]), rng.sample(docs, rng.choice([len(docs), 5])))
    ]


def write(folder: Path, names: str, *files: list[str], end: str = "\n") -> list[Path]:
    made = [folder / f"{name}.txt" for name in names.split()]
    for path, lines in zip(made, files, strict=True):
        path.write_bytes("".join(f"{line}{end}" for line in lines).encode())
    return made


def both(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    *arguments: object,
    codes: tuple[int, ...] = (0,),
) -> tuple[str, str]:
    """What a command writes of the pieces and of the whole; the first was of pieces indeed."""
    asked = [command, *map(str, arguments)]
    used: list[Path] = []

    def watched(path: Path, folder: Path, pieces: int) -> object:
        used.append(path)
        assert pieces > 2
        return split.split(path, folder, pieces)

    with monkeypatch.context() as patched:
        patched.setattr(large, "split", watched)
        assert main(asked) in codes
    pieces = capsys.readouterr().out
    assert used
    with monkeypatch.context() as patched:
        patched.setattr(large, "LARGE_BYTES", 10**12)
        assert main(asked) in codes
    return pieces, capsys.readouterr().out


@pytest.mark.parametrize("order", ["by query", "by score", "shuffled"])
@pytest.mark.parametrize("conventions", ["rankdash", "trec_eval"])
def test_the_numbers_are_those_of_the_whole(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    order: str,
    conventions: str,
):
    rng = random.Random(order + conventions)
    files = lines_of(rng, 300)
    for lines in files if order == "shuffled" else files[1:] if order == "by score" else ():
        rng.shuffle(lines)
    if order == "by score":
        files[1].sort(key=lambda line: -float(line.split()[4]))
    paths = write(tmp_path, "labels first second", *files)
    for form in (["--json"], ["--format", "csv", "--per-query"], ["--format", "text"]):
        pieces, whole = both(
            capsys, monkeypatch, "evaluate", *paths, *form, "--conventions", conventions,
            "--metric", "ndcg@10", "map", "mrr", "recall@5", "judged@10",
        )  # fmt: skip
        assert pieces == whole


@pytest.mark.parametrize("name", sorted(registry))
def test_every_metric(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
):
    """Those that look at all labels together are not asked of pieces."""
    # The highest label of all is in one piece alone.
    labels, first, _ = lines_of(random.Random(name), 200)
    labels.append(labels[0].rsplit(" ", 2)[0] + " d9999 9")
    paths = write(tmp_path, "labels first", labels, first)
    metric = registry[name]
    spec = f"{name}@5" if metric.has_cutoff else name
    if name in ("err", "map_graded", "map_graded_norm"):
        files = large.LargeFiles(paths[0], {"first": paths[1]}, "highest", None)
        assert large.evaluate_large(files, [parse_measure(spec)], Conventions()) is None
        return
    pieces, whole = both(capsys, monkeypatch, "evaluate", *paths, "--json", "--metric", spec)
    assert pieces == whole


GRADED = (-1, 0, 0, 1, 2, 3)


@pytest.mark.parametrize(
    ("order", "conventions", "challengers", "grades"),
    [
        ("by query", "rankdash", "one", (0, 1)),
        ("by query", "trec_eval", "three", GRADED),
        ("by score", "rankdash", "one reordered", GRADED),
        ("by score", "trec_eval", "one", (0, 1)),
        ("shuffled", "rankdash", "three", (0, 1)),
        ("shuffled", "trec_eval", "one reordered", GRADED),
    ],
)
def test_a_comparison_says_what_that_of_the_whole_says(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    order: str,
    conventions: str,
    challengers: str,
    grades: tuple[int, ...],
):
    rng = random.Random(f"{order} {conventions} {challengers} {grades}")
    labels, first, second = lines_of(rng, 150, grades=grades)
    again = reordered(rng, first)
    others = {"one": [second], "one reordered": [again], "three": [second, again, again[::2]]}
    files = [labels, first, *others[challengers]]
    for lines in files if order == "shuffled" else files[1:] if order == "by score" else ():
        rng.shuffle(lines)
    if order == "by score":
        files[1].sort(key=lambda line: -float(line.split()[4]))
    names = " ".join(["labels", "first", "second", "third", "fourth"][: len(files)])
    labels_at, first_at, *paths = write(tmp_path, names, *files)
    for form in ("json", "text"):
        pieces, whole = both(
            capsys, monkeypatch, "compare", "--qrels", labels_at, "--baseline", first_at,
            "--challenger", *paths, "--format", form, "--conventions", conventions,
            "--metric", "ndcg@10", "map", "judged@10",
        )  # fmt: skip
        assert pieces == whole


@pytest.mark.parametrize("missing", ["zero", "skip"])
def test_every_metric_is_compared(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    missing: str,
):
    """Also those that look at all labels together: the highest is in one piece alone."""
    labels, first, second = lines_of(random.Random(missing), 150)
    labels.append(labels[0].rsplit(" ", 2)[0] + " d9999 9")
    paths = write(tmp_path, "labels first second", labels, first, second)
    specs = [f"{name}@5" if registry[name].has_cutoff else name for name in sorted(registry)]
    options = ["--missing", missing, "--json", "--metric", *specs]
    pieces, whole = both(
        capsys, monkeypatch, "compare",
        *(part for pair in zip(SIDES, paths, strict=True) for part in pair), *options,
    )  # fmt: skip
    assert pieces == whole


SIDES = ("--qrels", "--baseline", "--challenger")


@pytest.mark.parametrize("named", ["json", "csv"])
def test_a_gate_decides_as_of_the_whole(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    named: str,
):
    """Also with queries that failed, which the ranking may hold all the same, and targets."""
    rng = random.Random(named)
    labels, first, second = lines_of(rng, 150)
    paths = write(tmp_path, "labels first second", labels, first, second)
    queries = sorted({line.split()[0] for line in [*labels, *second]})
    states = {query: rng.choice(["done", "done", "failed", "skipped"]) for query in queries}
    times = tmp_path / f"times.{named}"
    if named == "json":
        rows = [{"query_id": q, "state": s, "latency_ms": 5.0} for q, s in states.items()]
        times.write_text(json.dumps(rows))
    else:
        lines = [f"{query},{state},5.0" for query, state in states.items()]
        times.write_text("\n".join(["query_id,state,latency_ms", *lines]))
    sides = [part for pair in zip(SIDES, paths, strict=True) for part in pair]
    conditions = ["--min", "ndcg@10=0.3", "--min-gain", "map=-0.2", "--max-hurt", "mrr@10=0.6"]
    for options in (
        conditions,
        [*conditions, "--timings", times, "--max", "failed=3"],
        ["--timings", times, "--max", "p95_ms=3", "--profile", "faq"],
    ):
        pieces, whole = both(
            capsys, monkeypatch, "gate", *sides, *options, "--format", "json", codes=(0, 1)
        )
        assert pieces == whole


def test_what_is_odd_about_a_comparison_is_said_as_of_the_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    labels, first, second = lines_of(random.Random(8), 200)
    labels += labels[:40]
    paths = write(tmp_path, "labels first second", labels, first, second)
    asked = [str(part) for pair in zip(SIDES, paths, strict=True) for part in pair]
    said = []
    for size in (0, 10**12):
        monkeypatch.setattr(large, "LARGE_BYTES", size)
        assert main(["compare", *asked]) == 0
        lines = capsys.readouterr().err.splitlines()
        # Lines are those of a piece, and examples the first of one.
        assert size or not any(", line" in line for line in lines)
        said.append(
            {re.sub(r", line \d+|, such as '\w+'| \(such as .*", "", line) for line in lines}
        )
    assert len(said[0]) == 5
    assert said[0] == said[1]


@pytest.mark.parametrize("where", [1, 2])
def test_a_comparison_with_a_ranking_of_other_queries_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, where: int
):
    files = lines_of(random.Random(9), 150)
    files[where][:] = [f"x{line}" for line in files[where]]
    paths = write(tmp_path, "labels first second", *files)
    asked = [str(part) for pair in zip(SIDES, paths, strict=True) for part in pair]
    assert main(["compare", *asked]) == 2
    assert f"{paths[where]}: Queries of the ranking" in capsys.readouterr().err


def test_what_needs_documents_is_not_made_of_pieces(tmp_path: Path):
    """A study of pieces has no rankings: what they would say is refused, not told of nothing."""
    files = lines_of(random.Random(10), 150)
    paths = write(tmp_path, "labels first second", *files)
    runs = {"first": paths[1], "second": paths[2]}
    found = large.study_large(
        large.LargeFiles(paths[0], runs, "highest", None), "labels", "ndcg@10", [], Conventions(),
        StatisticsSettings.for_queries,
        lambda name, ranking, dataset: run_from_ranking(name, dataset.id, ranking, name),
    )  # fmt: skip
    assert found is not None
    study, _ = found
    with pytest.raises(KeyError):
        study.judged(FIRST_STAGE)
    with pytest.raises(SpecError, match="joined under other conventions"):
        replace(study, conventions=Conventions(score_precision="float32")).evaluate(
            FIRST_STAGE, ("map",)
        )


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_line_ends_and_tabs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: str
):
    labels, first, second = lines_of(random.Random(1), 250)
    tabbed = [line.replace(" ", "\t") for line in second]
    paths = write(tmp_path, "labels first second", labels, first, tabbed, end=end)
    paths[1].write_bytes(paths[1].read_bytes().rstrip())
    pieces, whole = both(capsys, monkeypatch, "evaluate", *paths, "--json")
    assert pieces == whole


def test_what_is_odd_is_said_once_and_of_the_whole(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    labels, first, _ = lines_of(random.Random(2), 300)
    ranked = {line.split()[0] for line in first}
    labelled = {line.split()[0] for line in labels}
    labels += labels[:40]
    paths = write(tmp_path, "labels first", labels, first)
    assert main(["evaluate", *map(str, paths)]) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == len({line.split(":")[1] for line in said})
    assert any("repeat the label of a pair: 40." in line for line in said)
    lacking = len(labelled - ranked)
    assert any(f"lacks: {lacking} of {len(labelled)}" in line for line in said)


def test_a_ranking_of_other_queries_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    labels, first, _ = lines_of(random.Random(3), 200)
    paths = write(tmp_path, "labels first", labels, [f"x{line}" for line in first])
    assert main(["evaluate", *map(str, paths)]) == 2
    assert f"{paths[1]}: Queries of the ranking" in capsys.readouterr().err


@pytest.mark.parametrize("where", [0, 1])
def test_an_uneven_file_is_read_as_a_whole(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, where: int
):
    labels, first, _ = lines_of(random.Random(4), 200)
    files = [labels, first]
    files[where].insert(len(files[where]) - 5, "only three fields")
    paths = write(tmp_path, "labels first", *files)
    assert main(["evaluate", *map(str, paths), "--json"]) == 0
    outcome = capsys.readouterr()
    assert f"line {len(files[where]) - 5}" in outcome.err
    assert json.loads(outcome.out)["systems"]["first"]["counts"]["queries"] > 100


def test_no_room_to_split(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    class Full:
        free = 10

    monkeypatch.setattr("shutil.disk_usage", lambda folder: Full)
    labels, first, _ = lines_of(random.Random(5), 100)
    paths = write(tmp_path, "labels first", labels, first)
    assert main(["evaluate", *map(str, paths)]) == 2
    assert "name another folder in TMPDIR" in capsys.readouterr().err


def test_nothing_is_left_of_the_pieces(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Callable
):
    made = tmp_path / "made"
    made.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(made))
    paths = write(tmp_path, "labels first second", *lines_of(random.Random(6), 100))
    assert main(["evaluate", *map(str, paths[:2])]) == 0
    assert list(made.iterdir()) == []
    asked = [str(part) for pair in zip(SIDES, paths, strict=True) for part in pair]
    assert main(["compare", *asked]) == 0
    assert list(made.iterdir()) == []


def packed(path: Path) -> Path:
    made = path.with_name(f"{path.name}.gz")
    # In two members, as `cat a.gz b.gz` makes them.
    half = len(content := path.read_bytes()) // 2
    made.write_bytes(gzip.compress(content[:half]) + gzip.compress(content[half:]))
    return made


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_gzip_files_are_split_too(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    command: str,
):
    files = lines_of(random.Random(command), 200)
    labels, first, second = write(tmp_path, "labels first second", *files)
    # Some are packed, in any place.
    if command == "evaluate":
        asked: list[object] = [labels, packed(first), second]
    else:
        sides = zip(SIDES, (packed(labels), first, packed(second)), strict=True)
        asked = [part for pair in sides for part in pair]
    pieces, whole = both(capsys, monkeypatch, command, *asked, "--json")
    assert pieces == whole


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (lambda content: content[: len(content) * 2 // 3], "gzip"),
        (lambda content: content[:300] + b"\0\0\0\0" + content[304:], "gzip"),
        (lambda content: gzip.compress(b"q1 0 d1 1\n" * 6_000_000), "200"),
    ],
)
def test_a_gzip_file_that_is_broken_or_a_bomb_is_refused(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    broken: Callable[[bytes], bytes],
    words: str,
):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    labels, first, _ = lines_of(random.Random(11), 200)
    paths = write(tmp_path, "labels first", labels, first)
    made = packed(paths[0])
    made.write_bytes(broken(made.read_bytes()))
    assert main(["evaluate", str(made), str(paths[1])]) == 2
    said = capsys.readouterr().err
    assert f"error: {made.name}: " in said and words in said
