"""The command line as a program: what it loads, how it ends, what it never shows."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rankdash.cli.arguments import INTERRUPTED
from rankdash.rerankers import kinds

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "streamlit", "plotly", "sentence_transformers", "transformers", "scipy", "bm25s")


def program(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rankdash", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **environment},
        timeout=300,
    )


def loaded_by(*arguments: object) -> set[str]:
    """The modules that a command leaves loaded."""
    code = (
        "import sys; from rankdash.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print('\\n' + ' '.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("command", [(), ("evaluate",)])
def test_help_loads_next_to_nothing(command: tuple[str, ...]):
    loaded = loaded_by(*command, "--help")
    assert "rankdash" in loaded
    assert loaded.isdisjoint((*HEAVY, "pandas.core", "numpy", "pyarrow", "babel"))


def test_evaluate_and_check_load_no_heavy_library(qrels: Path, first: Path):
    loaded = loaded_by("evaluate", "--qrels", qrels, "--run", first)
    # TREC files hold ids and numbers: nothing of them is a table of pandas.
    assert loaded.isdisjoint(("pandas.core", "babel", "pyarrow.fs"))
    assert "rankdash.study.study" in loaded
    assert loaded.isdisjoint(HEAVY)
    own = ("store", "rerankers", "runs", "loading", "reporting", "value.targets")
    assert loaded.isdisjoint(("sqlite3", *(f"rankdash.{each}" for each in own)))
    assert loaded_by("check", qrels, first).isdisjoint(HEAVY)


def test_evaluate_makes_tables_where_a_finding_needs_them(qrels: Path, first: Path):
    qrels.write_text(qrels.read_text() + "q1 0 d1 2\n")
    done = program("evaluate", "--qrels", qrels, "--run", first, "--metrics", "mrr")
    assert done.stdout.splitlines()[1].split() == ["first", "0.5000"]
    assert "Rows that repeat the label of a pair: 1." in done.stderr


@pytest.mark.parametrize(
    ("own", "typed", "frozen"),
    [
        (True, ["rerankers"], True),
        (True, ["evaluate", "--no"], False),
        (False, ["rerankers"], False),
    ],
)
def test_a_program_of_its_own_looks_for_no_garbage_in_what_it_imported(own, typed, frozen):
    code = f"""
import gc, os, sys
from rankdash.cli import main
typed, own = {typed!r}, {own!r}
sys.argv[1:] = typed
before = dict(os.environ)
main() if own else main(typed)
print(gc.isenabled(), gc.get_freeze_count() > 10_000, before == os.environ, file=sys.stderr)
"""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS")
    }
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env=environment
    )
    assert done.stderr.splitlines()[-1] == f"True {frozen} {not own}"


def test_the_module_can_be_run(qrels: Path, first: Path):
    done = program("evaluate", "--qrels", qrels, "--run", first, "--metrics", "mrr")
    assert done.returncode == 0
    assert done.stdout.splitlines()[1].split() == ["first", "0.5000"]


def test_help_names_every_command_and_option():
    assert all(name in program("--help").stdout for name in ("check", "evaluate", "rerank"))
    shown = program("evaluate", "--help").stdout
    for option in (
        *("--qrels", "--run", "--metrics", "--per-query", "--conventions", "--ties"),
        *("--threshold", "--judged-only", "--missing", "--no-relevant", "--format", "--conflict"),
    ):
        assert option in shown


def test_help_of_rerank_lists_the_settings_from_their_schema():
    shown = program("rerank", "--help").stdout
    _usage, _head, listed = shown.partition("rerankers and their settings (--set key=value):\n")
    named = re.findall(r"^  (\S+): ", listed, re.MULTILINE)
    assert named == [kind.name for kind in kinds() if kind.name != "precomputed"]
    (encoder,) = (kind for kind in kinds() if kind.name == "bi-encoder")
    start = listed.index("  bi-encoder: ")
    lines = listed[start:].splitlines()[: 1 + len(encoder.settings)]
    assert lines[0] == f"  bi-encoder: {encoder.meaning}"
    for line, spec in zip(lines[1:], encoder.settings, strict=True):
        assert line.startswith(f"    {spec.name}={spec.default}  {spec.help} (")


@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate",),
        ("nonsense",),
        ("evaluate", "--qrels", "x", "--run", "y", "--ties", "coin"),
        ("evaluate", "--qrels", "x", "--run", "y", "--threshold", "high"),
        ("evaluate", "--qrels", "nowhere", "--run", "nowhere"),
        ("check", "nowhere"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(run: Callable, arguments: tuple[str, ...]):
    outcome = run(*arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert len(outcome.err.splitlines()) == 1


def test_options_are_not_guessed_from_their_start(run: Callable, qrels: Path, first: Path):
    assert run("evaluate", "--qrels", qrels, "--run", first, "--per").code == 2


def test_an_unforeseen_fault_shows_no_traceback(
    run: Callable, monkeypatch: pytest.MonkeyPatch, qrels: Path, first: Path
):
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by the\nway")

    monkeypatch.setattr("rankdash.cli.evaluate.evaluate_files", broken)
    outcome = run("evaluate", "--qrels", qrels, "--run", first)
    assert outcome.code == 2
    assert outcome.err == (
        "error: This is a fault of rankdash, please report it: ZeroDivisionError: by the way\n"
    )


def test_stopping_by_hand_is_quiet(
    run: Callable, monkeypatch: pytest.MonkeyPatch, qrels: Path, first: Path
):
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rankdash.cli.evaluate.evaluate_files", stopped)
    outcome = run("evaluate", "--qrels", qrels, "--run", first)
    assert (outcome.code, outcome.err) == (INTERRUPTED, "Stopped.\n")


def test_a_reader_that_has_seen_enough_ends_it_quietly(qrels: Path, tmp_path: Path):
    ranking = tmp_path / "long.trec"
    ranking.write_text("".join(f"q1 Q0 d{n} 1 {-n} x\n" for n in range(9)))
    labels = tmp_path / "long.qrels"
    labels.write_text("q1 0 d1 1\n" + "".join(f"p{n} 0 d{n} 1\n" for n in range(20_000)))
    command = [
        sys.executable, "-m", "rankdash", "evaluate", "--qrels", labels, "--run", ranking,
        "--format", "csv", "--per-query",
    ]  # fmt: skip
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read().decode()
        assert process.wait(timeout=300) == 0
    assert "Broken" not in errors and "Traceback" not in errors


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_a_terminal_without_chinese_shows_escapes(tmp_path: Path, form: str):
    qrels, ranking = tmp_path / "a.qrels", tmp_path / "a.trec"
    qrels.write_text("查询 0 d1 1\n", encoding="utf-8")
    ranking.write_text("查询 Q0 d1 1 1.0 x\n", encoding="utf-8")
    done = program(
        "evaluate", "--qrels", qrels, "--run", ranking, "--per-query", "--format", form,
        PYTHONIOENCODING="ascii",
    )  # fmt: skip
    assert done.returncode == 0
    assert r"\u67e5" in done.stdout
