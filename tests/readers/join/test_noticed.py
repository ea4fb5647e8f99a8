"""What files say of the same ids, held against each other, and pairs of ids as numbers."""

import numpy as np
import pandas as pd
import pytest

from rankdash.readers.join.noticed import noticed
from rankdash.readers.join.parsed_file import Pairs, ParsedFile, Scores
from rankdash.readers.parse.skipped_rows import Refusals


def pairs(*rows: tuple[str, str, float]) -> Pairs:
    """The first row stands in line 2."""
    ids = pd.DataFrame([row[:2] for row in rows], columns=["query_id", "doc_id"], dtype=object)
    values = np.array([row[2] for row in rows], dtype=np.float64)
    return Pairs.of(ids, values, np.arange(2, 2 + len(rows)))


def made(file: str, queries=None, documents=None, **held: object) -> ParsedFile:
    """queries, documents: id → text."""
    tables = {}
    for name, key, given in (("queries", "query_id", queries), ("documents", "doc_id", documents)):
        if given is not None:
            rows = {key: list(given), "text": list(given.values())}
            tables[name] = pd.DataFrame(rows, dtype=object)
    return ParsedFile(file, "", "", Refusals(file), **tables, **held)


def told(*parts: ParsedFile, beside: tuple[ParsedFile, ...] = ()) -> list[tuple[str, int]]:
    return [(each.code, each.count) for each in noticed(parts, beside)]


def test_an_id_with_another_text_elsewhere_is_told_with_five_examples_and_all_counted():
    ids = [f"q{number}" for number in range(7)]
    one, other = (made(name, dict.fromkeys(ids, text)) for name, text in (("a", "x"), ("b", "y")))
    (finding,) = noticed([one, other], [])
    assert (finding.code, finding.count, finding.examples) == ("texts_differ", 7, tuple(ids[:5]))
    assert told(one, beside=(other,)) == [("texts_differ", 7)], "of what was read beside it too"


@pytest.mark.parametrize("text", ["x", None])
def test_the_same_text_and_none_are_no_other_text(text):
    assert told(made("a", {"q": "x"}), made("b", {"q": text})) == []
    assert told(made("a", documents={"d": "x"}), made("b", documents={"d": text})) == []
    assert told(made("a", {"1": "x"}), made("b", documents={"1": "y"})) == [], "of the other kind"


LABELS = {"labels": pairs(("q1", "d1", 1.0), ("q2", "d2", 0.0))}
RUN = {"scores": (Scores("run", "run", pairs(("q9", "d9", 1.0))),)}
LISTED = {"pairs": pd.DataFrame({"query_id": ["q8"], "doc_id": ["d8"]}, dtype=object)}


@pytest.mark.parametrize("speaking", [LABELS, RUN, LISTED])
def test_ids_that_nothing_speaks_of_are_told_once_for_queries_and_once_for_documents(speaking):
    texts = made("texts", {"x": "a", "y": "b"}, {"z": "c"})
    found = noticed([texts, made("ids", **speaking)], [])
    assert [(each.code, each.count, each.file) for each in found] == [
        ("ids_match_nothing", 2, "ids"), ("ids_match_nothing", 1, "ids")
    ]  # fmt: skip
    assert [each.line for each in found] == [None if speaking is LISTED else 2] * 2
    assert "'x'" in found[0].text and "'z'" in found[1].text


@pytest.mark.parametrize(
    "parts",
    [
        # One id that is spoken of is enough, whichever file speaks of it.
        [made("texts", {"x": "a", "q2": "b"}), made("labels", **LABELS)],
        [made("texts", {"q9": "a"}), made("labels", **LABELS), made("run", **RUN)],
        [made("one", {"x": "a"}), made("two", {"q1": "b"}), made("labels", **LABELS)],
        # A file that holds texts and labels speaks for itself.
        [made("both", {"x": "a"}, **LABELS)],
        # Nothing but texts, or nothing but labels.
        [made("texts", {"x": "a"})],
        [made("labels", **LABELS)],
        [],
    ],
)
def test_ids_are_no_strangers_where_something_speaks_of_one_or_nothing_speaks(parts):
    assert told(*parts) == []


def test_pairs_are_numbered_alike_and_a_repeat_is_found():
    found = pairs(("q", "a", 1.0), ("r", "a", 2.0), ("q", "b", 3.0), ("q", "a", 4.0))
    keys = found.keys().tolist()
    assert keys[0] == keys[3] and len(set(keys)) == 3
    assert found.repeat()
    kept = found.taken(np.array([False, True, True, True]))
    assert not kept.repeat()
    assert kept.frame("score").to_numpy().tolist() == [
        ["r", "a", 2.0, 3], ["q", "b", 3.0, 4], ["q", "a", 4.0, 5]
    ]  # fmt: skip
    assert not Pairs.none().repeat()


def test_pairs_of_several_files_come_one_after_the_other():
    one, other = pairs(("q", "a", 1.0)), pairs(("r", "b", 2.0), ("q", "a", 3.0))
    found = Pairs.joined([one, other])
    assert found.frame("label").to_numpy().tolist() == [
        ["q", "a", 1.0, 2], ["r", "b", 2.0, 2], ["q", "a", 3.0, 3]
    ]  # fmt: skip
    assert found.repeat()
    assert Pairs.joined([one]) is one
    assert found.ids("query_id").objects().tolist() == ["q", "r", "q"]
    assert found.ids("doc_id").objects().tolist() == ["a", "b", "a"]
