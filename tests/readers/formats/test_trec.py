"""TREC qrels and runs, their relatives without a header, and LETOR."""

from rankdash.core.readers import ReadLimits
from rankdash.core.readers.formats import letor, trec
from rankdash.core.readers.formats.trec import shape_of
from rankdash.core.readers.parse.source import Decoded
from tests.readers.reading import limits, shown
from tests.results import results

RUN = "q1 Q0 d1 1 9.5 bm25\nq1 Q0 d2 2 8 bm25\nq2 Q0 d3 1 1e-3 bm25\n"
QRELS = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d3 -1\n"


def test_qrels_and_runs_are_read_line_by_line(approved):
    lines = [f"q1 Q0 d{i} {i} {20 - i} x" for i in range(1, 13)]
    for at, line in ((4, "q1 Q0 d5 5 x"), (5, "q1 Q0 d6 6 NaN x"), (7, "q1 Q0 d8 8 inf x"),
                     (9, "q1 Q0 d1 10 8 x"), (11, "q1 Q0 d12 last 7 x")):  # fmt: skip
        lines[at] = line
    blank = [f"q1 Q0 d{i} {i} {50 - i} x" for i in range(1, 10)]
    blank[3] = "q1 Q0 d4 d4 4 46 x"
    cut = {"x": "q1 0 d1 1\nq1 0 d2 1\nq1 0 d3\n"}
    cases = {
        "labels and a run": {"labels": QRELS, "bm25.trec": RUN},
        "labels as words": {"q": "q1 0 d1 relevant\nq1 0 d2 irrelevant\n"},
        "a rank against the score is told": {
            "q": QRELS,
            "run": "q1 Q0 d1 1 1.0 x\nq1 Q0 d2 2 5.0 x\nq2 Q0 d1 1 3.0 x\nq2 Q0 d2 2 3.0 x\n",
        },
        "a list stored worst first is none": {
            "q": QRELS, "run": "q1 Q0 d1 2 1.0 x\nq1 Q0 d2 1 5.0 x\n"
        },
        "a run without a tag": {"q": QRELS, "run": RUN.replace(" bm25", "")},
        "a run whose tag is long in one line only": {
            "l": QRELS, "bm25.trec": "q1 Q0 d1 1 9.5\nq1 Q0 d2 2 8\nq2 Q0 d3 1 1e-3 a longer name\n"
        },
        **{
            f"{behind} behind the name of the run in {most} lines": {
                "l": QRELS, "bm25.trec": RUN.replace("\n", f" {behind}\n", most)
            }
            for behind in ("two", "a b c", "# 1.5 of 2")
            for most in (1, 3)
        },
        "bad lines are refused and the others kept": {"q": QRELS, "run": "\n".join(["", *lines])},
        "nothing but bad scores": {
            "q": QRELS, "run": "".join(f"q1 Q0 d{i} {i} nan x\n" for i in range(9))
        },
        "a blank too many shifts nothing": {"q": QRELS, "run": "\n".join(blank)},
        "ids may hold other white space": {"q": "q1 0 d\u3000one 1\nq1 0 d\u00a0two 0\n"},
        "ids may hold blanks between tabs": {"q": "q 1\t0\tdoc one\t1\nq 1\t0\tdoc two\t0\n"},
        "names in the first line make it a header": {
            "q": "corpus-id\tquery-id\tscore\nd1\tq1\t2\nd2\tq1\t0\n"
        },
        "a header with blanks between": {"q": "query_id doc_id label\nq1 d1 2\nq1 d2 0\n"},
        **{
            f"three fields that count up to {most}": {
                "q": "q1 0 d15 1\n",
                "run": "".join(f"q{q}\td{q}{i}\t{i}\n" for q in (1, 2) for i in range(1, most + 1)),
            }
            for most in (2, 4, 5, 7)
        },
        **{
            f"behind Q0 counting up to {most}": {
                "q": "q1 0 other 1\n",
                "run": "".join(f"q{q} Q0 d{q}{i} {i}\n" for q in (1, 2) for i in range(1, more)),
            }
            for most, more in ((1, 2), (2, 3))
        },
        "behind Q0 without scores and tag": {
            "qrels": "q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 1\n",
            "run": "q1 Q0 d1 1\nq1 Q0 d2 2\nq2 Q0 d2 1\nq2 Q0 d1 2\n",
        },
        "labels behind Q0 stay labels": {"x": "q1 Q0 d1 1\nq1 Q0 d2 0\nq2 Q0 d1 2\nq2 Q0 d2 1\n"},
        "Q0 in some lines makes no ranks": {"x": "q1 Q0 d1 1\nq1 0 d2 2\n"},
        **{
            f"labels {labels} are no ranks": {
                "x": "".join(f"q1 d{at} {label}\n" for at, label in enumerate(labels.split()))
            }
            for labels in ("1 1 3 4 5", "0 2 3 4 5", "1 2 3 4 6")
        },
        "ties fall by document id, as trec_eval has it": {
            "q": QRELS, "run": "".join(f"q1 Q0 d{i} {i} 1.0 x\n" for i in range(1, 12))
        },
        "refused lines count as rows: as many as allowed": (cut, limits(rows=3)),
        "and one more": (cut, limits(rows=2)),
    }  # fmt: skip
    approved("readers/trec.en", shown(cases))


RUN_LINE, QRELS_LINE, PLAIN, OTHER = "q1 Q0 d1 1 2.5 x", "q1 0 d1 1", "q1 d1 1", "of another form"


def test_a_file_is_a_run_qrels_or_plain_labels_by_its_lines(approved):
    one = [
        # Runs: the fourth field is a rank, the fifth a score, followed by a name or nothing.
        *(RUN_LINE, "q1 any d1 1 2.5 x", "q1 Q0 d1 one 2.5 x", "q1 Q0 d1 1 high x"),
        *("q1 Q0 d1 1 2.5", "q1 q0 d1 one 2.5", "q1 0 d1 1 2.5", "q1 1 d1 1 2.5"),
        *("q1 Q0 d1 1 high", "q1 Q0 d1 1 2.5 x y"),
        # Two short ids and a number are plain labels.
        *(PLAIN, f"{'q' * 100} d1 1", f"{'q' * 101} d1 1", f"q1 {'d' * 101} 1", "q1\td 1\t1"),
        *("文 d1 1", "q1 d1 one", "q1 d1 1 2"),
        # In qrels the label follows an iteration and a document.
        *(QRELS_LINE, "q1 12 d1 1", "q1 q1 d1 2.5", "q1 q1 d1 superb", "q1 0 d1 superb"),
        *("q1 7 d1 relevant", "q1 x d1 1", "q1 0 d1"),
    ]
    # Half of the lines of runs and qrels are sufficient, four fifths of lines with three fields;
    # two names make a header.
    shares = [
        *([each, *[OTHER] * n] for each in (RUN_LINE, QRELS_LINE) for n in (1, 2)),
        *([f"q1 {n} d1 superb", OTHER] for n in (0, 7)),
        *([PLAIN] * n + [OTHER] * (10 - n) for n in (8, 7)),
        *([f"qid {name} 1", *[PLAIN] * 9] for name in ("d0", "docid")),
    ]
    listed = [*([line] for line in one), *shares]
    cases = {" | ".join(lines): shape_of("\n".join(lines)) for lines in listed}
    # Ids may contain spaces if four fifths of lines have tabs. In a padded line spaces separate.
    texts = {
        **{
            f"{tabbed} of 10 lines have tabs": "\n".join(
                [f"q\t0\tdoc {at}\t1" for at in range(tabbed)]
                + [f"q 0 d{at} 1" for at in range(tabbed, 10)]
            )
            for tabbed in (8, 7)
        },
        "a padded line": "q\t0\td1\t1\nq \t 0 \t d2 \t 1\n",
        "none": "q a\t0\td1\t1\n\n",
    }
    read = {
        name: trec.read(Decoded(text, "utf-8"), "qrels", "x", ReadLimits()).frame
        for name, text in texts.items()
    }
    approved("readers/trec_shapes", results({**cases, **read}))


COMMENTS = ("d1 of some source", " inc = 1 docid = d2 prob = 0.1", "DOCID=d3", "")


def test_lines_of_features_are_read_as_rows(approved):
    cases = {
        **{
            f"{good}, and {bad} of another form": letor.matches(
                "\n".join(["# a comment", good, *["of another form"] * bad])
            )
            for good in ("2 qid:1 1:0.5 2:3 # d1", "1 1:0.5 2:3")
            for bad in (1, 2)
        }
    }
    texts = {
        "a feature that a line leaves out is 0, and of two the first counts": (
            "2 qid:1 3:0.5 3:0.9 # a\n1 qid:1 10:7 # b\n0 qid:1 2:4 3:0.1 # c\n"
        ),
        "a query has the first title that a comment gives it": (
            "# qid:1: rambo\n# qid:1: rocky\n1 qid:1 1:2 # d\n0 qid:2 1:2 # d\n"
        ),
        **{
            f"the last line may be cut: {text!r}": text
            for text in (
                "2 qid:1 # a\n0 qid:1 # b", "2 qid:1 1:3 # a\n0 qid:1 1:5 # b",
                "2 qid:1 1:3 # a\n0 qid:1", "2 qid:1 1:3 # a\n0 qid:1\n",
            )
        },
        **{
            f"the comment {comment!r}": f"1 qid:1 1:2 #{comment}\n0 qid:1 1:2 # other\n"
            for comment in COMMENTS
        },
        "no comment": "1 qid:1 1:2\n0 qid:1 1:2 # other\n",
        "documents without a name are counted by query": (
            "1 qid:a 1:2\n0 qid:b 1:2\n\n0 qid:a 1:2\n"
        ),
        "no features": "1 qid:a # d\n",
    }  # fmt: skip
    for name, text in texts.items():
        table = letor.read(text, "x", ReadLimits())
        rows = table.frame.assign(line=table.lines).to_dict("records")
        counts = [finding.count for finding in table.findings]
        cases[name] = "\n".join([*map(str, rows), f"wants {table.wants}, findings {counts}"])
    approved("readers/letor", results(cases))
