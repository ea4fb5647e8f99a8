"""`check`: the report in text, and whether the data can be used as the exit code."""

from collections.abc import Callable
from pathlib import Path


def test_sound_data_is_described(run: Callable, qrels: Path, first: Path):
    outcome = run("check", qrels, first)
    assert outcome.code == 0
    lines = [line.split() for line in outcome.out.splitlines()]
    assert ["queries", "5"] in lines
    assert ["labels", "7", "over", "4", "queries"] in lines
    assert ["1", "3", "#" * 30] in lines
    assert ["0", "3", "#" * 30] in lines
    assert any(line[:3] == ["first", "stage", "4"] for line in lines)


def test_warnings_stand_in_the_report_and_do_not_fail_it(run: Callable, qrels: Path, first: Path):
    outcome = run("check", qrels, first)
    lines = outcome.out.splitlines()
    start = lines.index("3 warnings")
    assert lines[start + 1 : start + 5] == [
        "- Labelled queries without a relevant document (label 1 or more): 1 of 4. They say "
        "nothing about an order and are counted separately. (such as q3)",
        "- Labelled queries that the ranking first stage lacks: 1 of 4, such as 'q4'. They count "
        "as 0, like a search that finds nothing, unless you exclude them. (such as q4)",
        "- Queries without candidates: 1 of 5. There is nothing to rerank for them; they count as "
        "missing. (such as q4)",
        "",
    ]


def test_errors_are_shown_with_the_rest_of_the_report(run: Callable, first: Path, tmp_path: Path):
    other = tmp_path / "other.qrels"
    other.write_text("77 0 d1 1\n78 0 d1 0\n")
    outcome = run("check", other, first)
    assert outcome.code == 1
    assert "\n1 error\n" in outcome.out
    assert "'77'" in outcome.out
    assert "queries" in outcome.out


def test_a_file_that_cannot_be_read_has_errors(run: Callable, tmp_path: Path):
    broken = tmp_path / "broken.json"
    broken.write_text('[{"query": "a", ')
    outcome = run("check", broken)
    assert outcome.code == 1
    assert outcome.out == ""
    assert outcome.err.startswith("error: broken.json")
    assert len(outcome.err.splitlines()) == 1


def test_a_folder_is_read_as_a_data_set(run: Callable, shared_data: Path):
    outcome = run("check", shared_data / "medquad")
    assert outcome.code == 0
    assert outcome.out.startswith("medquad\n")
    assert "2,523" in outcome.out
    assert "14.8%" in outcome.out


def test_hostile_text_in_the_data_stays_text(run: Callable, tmp_path: Path):
    hostile = tmp_path / "labels.csv"
    hostile.write_text("query_id,doc_id,label\n\x1b[31mred,d1,0\nq2,d1,1\nq2,d2,much\n")
    outcome = run("check", hostile)
    assert "\x1b" not in outcome.out + outcome.err


def test_what_blocks_reranking_is_the_first_line(run: Callable, tmp_path: Path):
    file = tmp_path / "ranked.csv"
    file.write_text("query_id,query,doc_id,label,score\nq1,a gift,d1,1,2\nq1,a gift,d2,0,1\n")
    lines = run("check", file).out.splitlines()
    assert lines[:2] == [
        "ranked",
        "No document has a text. The rankings can be compared; nothing can be reranked. Add the "
        "file with the texts, such as corpus.jsonl.",
    ]
    assert not [line for line in lines[2:] if "reranked" in line]
