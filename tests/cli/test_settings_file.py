"""`rankdash.toml`: options from the folder, keys and types those of the parsers."""

from collections.abc import Callable
from pathlib import Path

import pytest

FILES = 'qrels = "labels.qrels"\nbaseline = "base.trec"\nchallenger = "up.trec"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Labels of 20 queries, a run that has the relevant document second, and one that has it first;
    the folder is the current one."""
    monkeypatch.chdir(tmp_path)
    Path("labels.qrels").write_text("".join(f"q{i} 0 good 1\n" for i in range(20)))
    for name, order in (("base", ("bad", "good")), ("up", ("good", "bad"))):
        Path(f"{name}.trec").write_text(
            "".join(f"q{i} Q0 {d} 1 {9 - n} x\n" for i in range(20) for n, d in enumerate(order))
        )
    return tmp_path


@pytest.fixture
def given(folder: Path, run: Callable) -> Callable:
    """Runs a command with a settings file."""

    def command(settings: str, *arguments: object, file: str = "rankdash.toml"):
        (folder / file).write_text(settings, encoding="utf-8")
        return run(*arguments)

    return command


def test_a_gate_needs_no_more_than_the_file(given, folder):
    done = given(FILES + "min_gain = 0.0\nmax_hurt = 0.1\n[gate.min]\n'mrr@10' = 0.9\n", "gate")
    assert done.code == 0
    # Without a metric, bare numbers hold for the one that a condition names.
    assert done.out.startswith("Passed: up against base. All 3 conditions are met.")
    assert done.out.count("MRR@10") == 3
    assert done.err == (
        "Settings from rankdash.toml: min, qrels, baseline, challenger, min_gain, max_hurt\n"
    )
    assert sorted(path.name for path in folder.iterdir()) == [
        "base.trec", "labels.qrels", "rankdash.toml", "up.trec",
    ]  # fmt: skip


def test_one_file_serves_all_commands(given, folder):
    settings = (
        FILES + 'runs = ["base.trec", "up.trec"]\nmetrics = "mrr@10,P(rel=1)@1"\n'
        'confidence = 0.9\nconventions = "trec_eval"\nmin = [0.5, "hit@1=0.9"]\nseed = 7\n'
        'out = "gate.md"\n[compare]\njson = true\n[evaluate]\nper-query = true\n'
        '[report]\nout = "report.html"\nsections = ["verdict"]\n'
    )
    gated = given(settings, "gate")
    assert gated.code == 0
    assert gated.out.count("\npass ") == 3
    assert "at 90% confidence" in gated.out
    assert (folder / "gate.md").read_text(encoding="utf-8").startswith("## Passed")
    assert gated.err.endswith("; not for gate: runs\n")
    compared = given(settings, "compare")
    assert (compared.json["settings"]["level"], compared.json["settings"]["seed"]) == (0.9, 7)
    assert compared.json["settings"]["no_relevant"] == "count"
    assert [row["metric"] for row in compared.json["comparisons"][::2]] == ["mrr@10", "precision@1"]
    evaluated = given(settings, "evaluate")
    assert evaluated.out.splitlines()[0].split() == ["system", "mrr@10", "P(rel=1)@1"]
    assert evaluated.out.count("scored") == 40
    reported = given(settings, "report")
    assert reported.code == 0, reported.err
    assert 'id="verdict"' in (folder / "report.html").read_text(encoding="utf-8")


def test_what_is_typed_goes_before_the_file(given, folder):
    settings = FILES + 'metric = ["map"]\nmin = 1\nmax_hurt = 0\ntimings = "nowhere.json"\n'
    (folder / "times.json").write_text('[{"query_id": "q1", "latency_ms": 3}]')
    typed = ("--challenger", "base.trec", "--baseline", "up.trec", "--timings", "times.json")
    done = given(settings, "gate", "--min", "mrr@10=0.4", "--level", "0.8", *typed)
    assert done.code == 1
    assert "Failed: base against up. Not met: 1 of 2" in done.out
    assert "MRR@10, at least 0.4" in done.out and "MAP, queries hurt, at most 0%" in done.out
    assert done.err == "Settings from rankdash.toml: qrels, metric, max_hurt\n"


@pytest.mark.parametrize(
    ("typed", "systems"),
    [
        ((), ["base"]),
        (("up.trec",), ["up"]),
        (("labels.qrels", "up.trec"), ["up"]),
        (("--run", "up.trec"), ["up"]),
        (("--qrels", "labels.qrels", "up.trec", "base.trec"), ["up", "base"]),
    ],
)
def test_evaluate_takes_from_the_file_what_is_not_typed(given, typed, systems):
    done = given(
        'qrels = "labels.qrels"\nrun = "base.trec"\nmetrics = "mrr"\njson = true\n',
        "evaluate", *typed,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert list(done.json["systems"]) == systems


def test_the_table_of_a_project_serves_where_there_is_no_file_of_its_own(given, run, folder):
    project = '[project]\nname = "shop"\n[tool.rankdash]\n' + FILES + "min = 0.5\n"
    done = given(project, "gate", file="pyproject.toml")
    assert done.code == 0
    assert done.err.startswith("Settings from pyproject.toml: qrels,")
    assert given(FILES + "min = 0.9\n", "gate", "--metric", "mrr").err.startswith(
        "Settings from rankdash.toml"
    )
    # A project that says nothing of rankdash is no matter of it, even where it is broken.
    (folder / "rankdash.toml").unlink()
    silent = given("[project\n", "evaluate", "labels.qrels", "up.trec", file="pyproject.toml")
    assert (silent.code, silent.err) == (0, "")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("min_gian = 0\n", "There is no key 'min_gian'. Did you mean 'min_gain'?"),
        ("[report]\ntitel = 'x'\n", "There is no key 'titel' in [report]. Did you mean 'title'?"),
        ("[evaluate]\nmin = 1\n", "There is no key 'min' in [evaluate]."),
        ("[serve]\nport = 1\n", "There is no key 'serve'."),
        ("gate = 3\n", "'gate' must be a table"),
        ("timings = 'nowhere.json'\n", "'timings' names 'nowhere.json', and there is no such"),
        ("confidence = 'high'\n", "'confidence' must be a number, not \"high\"."),
        ("confidence = true\n", "'confidence' must be a number, not true."),
        ("seed = 1.5\n", "'seed' must be a whole number, not 1.5."),
        ("min_gain = 1979-05-27\n", "'min_gain' must be a number, or a text or table such as"),
        ("min_gain = [[1]]\n", "'min_gain' must be a number"),
        ("min_gain = {mrr = [1]}\n", "'min_gain.mrr' must be a number"),
        ("latency_column = ['a', 'b']\n", '\'latency_column\' must be a text, not ["a", "b"].'),
        ("judged_only = 'yes'\n", "'judged_only' must be true or false, not \"yes\"."),
        ("ties = 'coin'\n", "'ties' must be one of as_ranked, trec, stable, not \"coin\"."),
        ("format = 'csv'\n", "'format' must be one of text, json, markdown, junit, not \"csv\"."),
        ("metric = 'map'\nmetrics = 'mrr'\n", "'metrics' cannot stand beside 'metric'."),
    ],
)
def test_a_fault_of_the_file_is_told_with_file_and_key(given, settings, told):
    done = given(FILES + settings, "gate")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: rankdash.toml: {told}")
    assert done.err.count("\n") == 1


def test_what_is_no_toml_is_told_with_its_line(given):
    done = given(FILES + "min_gain =\n", "gate")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: rankdash.toml, line 4: The settings cannot be read: Invalid")


def test_two_sources_in_one_table_are_refused_and_a_table_goes_first(given, folder):
    settings = FILES + 'data = "."\nout = "report.html"\n'
    done = given(settings, "report")
    assert done.code == 2
    assert "'data' cannot stand beside 'qrels'. Keep one, or put it into the table" in done.err
    settings = FILES + f'out = "report.html"\n[report]\ndata = "{folder.name}"\n'
    done = given(settings, "report")
    assert f"'data' names '{folder.name}', and there is no such file or folder" in done.err
    # What is typed leaves the other of the two in the file alone.
    done = given(settings, "report", "--qrels", "labels.qrels", "--sections", "verdict")
    assert done.code == 0, done.err


def test_a_false_switch_is_the_default_and_help_needs_no_good_file(given, capsys):
    done = given(FILES + "json = false\njudged_only = false\nmin = 0.1\n", "gate")
    assert done.out.startswith("Passed: ")
    with pytest.raises(SystemExit):
        given("nonsense", "gate", "--help")
    assert "--min-gain" in capsys.readouterr().out


def test_other_commands_do_not_look_at_it(given):
    assert given("nonsense = 1\n", "check", "labels.qrels", "base.trec").err == ""
