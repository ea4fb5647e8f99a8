"""LETOR: how many lines make such a file, and the features, titles and names in each."""

from rankdash.readers import ReadLimits
from rankdash.readers.formats import letor
from tests.results import results

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
