"""The command line as a program: loaded modules, exit codes, and values that it never shows."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rankdash.core.readers import files
from rankdash.kit.commands.arguments import INTERRUPTED
from tests.sets import ROOT

HEAVY = ("torch", "streamlit", "plotly", "sentence_transformers", "transformers", "scipy", "bm25s")


def python(
    *arguments: object, without: str = "\n", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run it. without: prefixes of environment variables that it does not get."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(without)}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT, capture_output=True, encoding="utf-8", env={**kept, **environment}, timeout=300,
    )  # fmt: skip


def loaded_by(*arguments: object) -> set[str]:
    """Return the modules that are loaded at the end of a command."""
    code = (
        "import sys; from rankdash.app.command import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print('\\n' + ' '.join(sys.modules))"
    )
    return set(python("-c", code, *arguments).stdout.splitlines()[-1].split())


def test_help_loads_next_to_nothing_and_evaluate_and_check_no_heavy_library(
    qrels: Path, first: Path
):
    for command in ((), ("evaluate",)):
        loaded = loaded_by(*command, "--help")
        assert "rankdash" in loaded
        assert loaded.isdisjoint((*HEAVY, "pandas.core", "numpy", "pyarrow", "babel"))
    loaded = loaded_by("evaluate", "--qrels", qrels, "--run", first)
    # TREC files contain ids and numbers and need no table of pandas.
    assert loaded.isdisjoint(("pandas.core", "babel", "pyarrow.fs"))
    assert "rankdash.core.study.study" in loaded
    assert loaded.isdisjoint(HEAVY)
    own = ("workspace", "rerankers", "runs", "readers.loading", "value.targets")
    assert loaded.isdisjoint(("sqlite3", *(f"rankdash.core.{each}" for each in own)))
    assert loaded_by("check", qrels, first).isdisjoint(HEAVY)


def test_a_file_of_settings_is_read_before_a_library_that_comes_late(tmp_path, qrels, first):
    (tmp_path / "rankdash.toml").write_text('[evaluate]\nmetric = "p@1"\n')
    moved = f"from rankdash.app.command import main; import os; os.chdir({str(tmp_path)!r}); "
    done = python("-c", f"{moved}main(['evaluate', {str(qrels)!r}, {str(first)!r}])")
    assert done.stdout.splitlines()[0].split() == ["system", "p@1"], done.stderr


def test_a_program_makes_tables_where_a_finding_needs_them(qrels: Path, first: Path):
    qrels.write_text(qrels.read_text() + "q1 0 d1 2\n")
    done = python("-m", "rankdash", "evaluate", "--qrels", qrels, "--run", first, "-m", "mrr")
    assert done.returncode == 0
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
from rankdash.app.command import main
typed, own = {typed!r}, {own!r}
sys.argv[1:] = typed
before = dict(os.environ)
main() if own else main(typed)
print(gc.isenabled(), gc.get_freeze_count() > 10_000, before == os.environ, file=sys.stderr)
"""
    done = python("-c", code, without="OPENBLAS")
    assert done.stderr.splitlines()[-1] == f"True {frozen} {not own}"


@pytest.mark.parametrize(
    ("problem", "code", "said"),
    [
        (
            ZeroDivisionError("by the\nway"),
            2,
            "error: This is a bug in rankdash, please report it: ZeroDivisionError: by the way\n",
        ),
        (KeyboardInterrupt(), INTERRUPTED, "Stopped.\n"),
    ],
)
def test_an_unforeseen_end_shows_no_traceback(run, monkeypatch, qrels, first, problem, code, said):
    def ended(*_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr("rankdash.features.overview.command_evaluate.evaluate_files", ended)
    done = run("evaluate", "--qrels", qrels, "--run", first)
    assert (done.code, done.out, done.err) == (code, "", said)


def test_a_reader_that_has_seen_enough_ends_it_quietly(qrels: Path, tmp_path: Path):
    ranking, labels = tmp_path / "long.trec", tmp_path / "long.qrels"
    ranking.write_text("".join(f"q1 Q0 d{n} 1 {-n} x\n" for n in range(9)))
    labels.write_text("q1 0 d1 1\n" + "".join(f"p{n} 0 d{n} 1\n" for n in range(20_000)))
    command = [
        sys.executable, "-m", "rankdash", "evaluate", labels, ranking, "--format", "csv",
        "--per-query",
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


def test_a_terminal_without_chinese_shows_escapes(tmp_path: Path):
    qrels, ranking = tmp_path / "a.qrels", tmp_path / "a.trec"
    qrels.write_text("查询 0 d1 1\n", encoding="utf-8")
    ranking.write_text("查询 Q0 d1 1 1.0 x\n", encoding="utf-8")
    code = (
        "import sys; from rankdash.app.command import main\n"
        "for form in ('table', 'json', 'csv'):\n"
        "    assert main(['evaluate', *sys.argv[1:], '--per-query', '--format', form]) == 0"
    )
    done = python("-c", code, qrels, ranking, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.count(r"\u67e5") == 3


@pytest.mark.parametrize("command", ["evaluate", "compare", "report"])
def test_every_file_is_read_once(
    run: Callable, tmp_path: Path, monkeypatch, qrels, first, second, command: str
):
    read = []
    real = files.tables_of
    monkeypatch.setattr(
        files, "tables_of", lambda source, limits: read.append(source.name) or real(source, limits)
    )
    sides = ("--baseline", first, "--challenger", second)
    options = {
        "evaluate": ("--run", first, second),
        "compare": sides,
        "report": (*sides, "--out", tmp_path / "r.html", "--sections", "systems"),
    }
    assert run(command, "--qrels", qrels, *options[command]).code == 0
    assert sorted(read) == sorted(each.name for each in (qrels, first, second))
