"""`sample-log`: a table of queries from a log, and what it reports."""

import csv
import io

from rankdash.core.readers import Source, read


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_log_becomes_a_table_of_queries(run, tmp_path):
    log, out = tmp_path / "log.tsv", tmp_path / "queries.csv"
    lines = [f"query {at}\t{max(300 // at, 1)}\n" for at in range(1, 500)]
    log.write_text("user_query\tcount\n" + "".join(lines) + "\t5\n")
    done = run("sample-log", log, "--queries", "60", "--out", out)
    assert done.code == 0
    assert "Log: table, counts from the column count" in done.err
    assert "Lines without a query, skipped: 1\n" in done.err
    assert "Queries sampled: 60." in done.err
    assert [line.split()[0] for line in done.err.splitlines() if "%" in line] == [
        "head",
        "torso",
        "tail",
    ]
    rows = rows_of(out.read_text())
    assert [*rows[0]] == ["query_id", "text", "frequency", "stratum", "probability"]
    assert len(rows) == 60 == len({row["query_id"] for row in rows})
    assert all(0 < float(row["probability"]) <= 1 for row in rows)
    again = run("sample-log", log, "--queries", "60", "--out", "-")
    assert again.out == out.read_text()


def test_no_query_of_a_log_runs_as_a_formula(run, tmp_path):
    log = tmp_path / "log.txt"
    log.write_text("=1+1\nplain\n" * 3 + "a\nb\nc\nd\n")
    done = run("sample-log", log, "--queries", "6", "--out", "-")
    assert "'=1+1" in done.out


def test_a_seed_may_be_negative(run, tmp_path):
    log = tmp_path / "log.txt"
    log.write_text("".join(f"query {at}\n" for at in range(100)))
    samples = [
        run("sample-log", log, "--queries", "9", "--seed", seed, "--out", "-")
        for seed in (-1, -1, 1)
    ]
    assert [each.code for each in samples] == [0, 0, 0]
    assert samples[0].out == samples[1].out != samples[2].out


def test_the_log_is_not_overwritten(run, tmp_path):
    log = tmp_path / "log.txt"
    log.write_text("a\nb\n")
    done = run("sample-log", log, "--queries", "6", "--out", log)
    assert done.code == 2 and "would overwrite" in done.err
    assert log.read_text() == "a\nb\n"


def test_frequencies_and_probabilities_are_not_groups_of_queries():
    queries = "query_id,text,frequency,stratum,probability\nq1,red,10,head,1\nq2,blue,1,tail,0.1\n"
    labels = "query_id,doc_id,label\nq1,d1,1\nq2,d1,0\n"
    parsed = read([Source("queries.csv", queries.encode()), Source("qrels.csv", labels.encode())])
    assert list(parsed.queries.columns[2:]) == ["frequency", "stratum", "probability"]
