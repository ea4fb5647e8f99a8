"""Files that memory cannot hold: split by query, and the same numbers as of the whole."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from rankdash.cli.main import main
from rankdash.metrics import Conventions, parse_measure, registry
from rankdash.readers import split
from rankdash.study import large


@pytest.fixture(autouse=True)
def in_pieces(monkeypatch: pytest.MonkeyPatch):
    """Some tens of queries a piece, and some lines a block."""
    monkeypatch.setattr(large, "LARGE_BYTES", 0)
    monkeypatch.setattr(split, "_PIECE_BYTES", 20_000)
    monkeypatch.setattr(split, "_BLOCK_BYTES", 3_000)


def lines_of(rng: random.Random, queries: int) -> tuple[list[str], list[str], list[str]]:
    """Labels and two runs. Some queries are ranked nowhere, some have no labels, some scores are
    tied, and some labels are below 0."""
    labels, first, second = [], [], []
    for query in rng.sample(range(1000, 9999), queries):
        docs = rng.sample(range(500), 12)
        if rng.random() < 0.9:
            labels += [f"q{query} 0 d{doc} {rng.choice([-1, 0, 0, 1, 2, 3])}" for doc in docs[::2]]
        for run in (first, second):
            if rng.random() < 0.9:
                ranked = rng.sample(docs, 10)
                run += [
                    f"q{query} Q0 d{doc} {rank} {rng.choice([rank, 5, 10 / rank])} x"
                    for rank, doc in enumerate(ranked, 1)
                ]
    return labels, first, second


def write(folder: Path, names: str, *files: list[str], end: str = "\n") -> list[Path]:
    made = [folder / f"{name}.txt" for name in names.split()]
    for path, lines in zip(made, files, strict=True):
        path.write_bytes("".join(f"{line}{end}" for line in lines).encode())
    return made


def both(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: object
) -> tuple[str, str]:
    """What `evaluate` writes of the pieces and of the whole; the first was of pieces indeed."""
    asked = list(map(str, arguments))
    used: list[Path] = []

    def watched(path: Path, folder: Path, pieces: int) -> object:
        used.append(path)
        assert pieces > 2
        return split.split(path, folder, pieces)

    with monkeypatch.context() as patched:
        patched.setattr(large, "split", watched)
        assert main(["evaluate", *asked]) == 0
    pieces = capsys.readouterr().out
    assert used
    with monkeypatch.context() as patched:
        patched.setattr(large, "LARGE_BYTES", 10**12)
        assert main(["evaluate", *asked]) == 0
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
            capsys, monkeypatch, *paths, *form, "--conventions", conventions,
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
    if name in large._SCALED:
        found = large.evaluate_large(
            paths[0], {"first": paths[1]}, [parse_measure(spec)], Conventions(), "highest", None
        )
        assert found is None
        return
    pieces, whole = both(capsys, monkeypatch, *paths, "--json", "--metric", spec)
    assert pieces == whole


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_line_ends_and_tabs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: str
):
    labels, first, second = lines_of(random.Random(1), 250)
    tabbed = [line.replace(" ", "\t") for line in second]
    paths = write(tmp_path, "labels first second", labels, first, tabbed, end=end)
    paths[1].write_bytes(paths[1].read_bytes().rstrip())
    pieces, whole = both(capsys, monkeypatch, *paths, "--json")
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
    labels, first, _ = lines_of(random.Random(6), 100)
    paths = write(tmp_path, "labels first", labels, first)
    assert main(["evaluate", *map(str, paths)]) == 0
    assert list(made.iterdir()) == []
