"""What is encoded, kept and counted of texts, whatever model does it."""

import os
from pathlib import Path

import numpy as np
import pytest

from rankdash.rerankers import Request
from rankdash.rerankers.kinds import late_interaction
from rankdash.rerankers.kinds.bi_encoder import _answer, _index
from rankdash.rerankers.kinds.late_interaction import _chunks, _counts, _Kept, _Tokens
from rankdash.rerankers.neural.embeddings import Embeddings, KeptEmbeddings
from rankdash.rerankers.neural.fidelity import Sample
from rankdash.rerankers.neural.shared import Indexed

MODEL = "a" * 32


def vector(*values: float, full: int = 3) -> KeptEmbeddings:
    return KeptEmbeddings(np.array(values, dtype=np.float32), full)


def opened(root: Path, name: str = MODEL, **limit: int) -> Embeddings:
    return Embeddings(root, name + "and more", **limit)


def files(root: Path) -> list[Path]:
    return sorted(root.glob("*/*"))


@pytest.mark.parametrize(("spare", "kept"), [(0, True), (-1, False)])
def test_the_model_used_longest_ago_makes_room(tmp_path, spare, kept):
    for age, name in ((1000, "b" * 32), (9000, "c" * 32)):
        opened(tmp_path, name).add(["x"], [vector(*range(64))])
        os.utime(tmp_path / name, (age, age))
    size = sum(file.stat().st_size for file in files(tmp_path))
    limit = size * 3 // 2 + spare
    opened(tmp_path, limit_bytes=limit).add(["x"], [vector(*range(64))])
    assert (tmp_path / ("b" * 32)).exists() == kept
    assert "x" in opened(tmp_path, "c" * 32)
    assert "x" in opened(tmp_path)


def test_vectors_of_several_lengths_and_a_disk_that_is_full_are_kept_in_memory_alone(tmp_path):
    made = opened(tmp_path)
    made.add(["one", "two"], [vector(1), vector(1, 2)])
    assert "two" in made and files(tmp_path) == []
    (tmp_path / "file").write_text("")
    unwritable = Embeddings(tmp_path / "file", MODEL)
    unwritable.add(["one"], [vector(1)])
    assert unwritable.of("one").full == 3


def test_a_disk_that_fills_up_costs_the_cache_alone(tmp_path, full_disk):
    for number in range(20):
        opened(tmp_path).add([f"known {number}"], [vector(number)])
    before = files(tmp_path)
    made = opened(tmp_path, "b" * 32)
    with full_disk():
        made.add(["one"], [vector(1)])
        again = opened(tmp_path)
    assert made.of("one").full == 3 and "known 0" in again and "known 19" in again
    assert files(tmp_path) == before


class Encoder:
    """The first letter as a vector; `asked` are the texts it was given."""

    def __init__(self):
        self.asked, self.limit = [], 2

    def encode(self, texts, role):
        self.asked.append((list(texts), role))
        return [vector(ord(text[0]), 1) for text in texts]


def test_a_document_is_encoded_once_however_often_it_is_a_candidate(tmp_path):
    encoder, held = Encoder(), opened(tmp_path)
    first, again = (_index(encoder, held, texts) for texts in (["b", "a", "b"], ["a", "b"]))
    assert first.seconds > 0
    assert first.tokens == 2 + 2
    assert again == Indexed(0.0, 0.0)
    _index(encoder, held, ["a", "c"])
    assert encoder.asked == [(["b", "a"], "document"), (["c"], "document")]


def test_a_cosine_and_its_tokens_are_those_of_query_and_document():
    query = vector(1, 0, full=9)
    found = _answer(query, [vector(3, 4, full=4), vector(0, 2, full=7)], 6, Indexed(0.5, 10.0))
    assert found.scores.tolist() == pytest.approx([0.6, 0.0])
    assert (found.tokens.tolist(), found.full.tolist()) == ([6 + 4, 6 + 6], [9 + 4, 9 + 7])
    assert (found.index_seconds, found.computed_tokens) == (0.5, 16)
    unknown = _answer(query, [vector(1, 0)], None, Indexed(0.5, 0.0))
    assert (unknown.tokens, unknown.full) == (None, None)
    assert len(_answer(query, [], 6, Indexed(0.5, 0.0)).scores) == 0


def test_late_interaction_counts_as_much():
    read, full = _counts(9, np.array([4, 7]), 6)
    assert (read.tolist(), full.tolist()) == ([10, 12], [13, 16])
    assert _counts(9, np.array([4]), None) == (None, None)


def request(name: str, *texts: str) -> Request:
    return Request(name, name, [f"d{at}" for at in range(len(texts))], list(texts))


def test_documents_come_in_portions_each_once_with_all_who_ask_for_it(monkeypatch):
    monkeypatch.setattr(late_interaction, "_CHUNK_CHARACTERS", 5)
    asked = [request("q", "abc", "de", "f"), request("r", "de", "too long by far")]
    assert list(_chunks(asked)) == [
        [("abc", [(0, 0)]), ("de", [(0, 1), (1, 0)])],
        [("f", [(0, 2)])],
        [("too long by far", [(1, 1)])],
    ]
    assert list(_chunks([])) == []


def test_of_the_documents_kept_those_used_last_stay():
    def tokens(size):
        return _Tokens(np.zeros((size, 1), dtype=np.float32), size)

    kept = _Kept(12)
    kept.add({"a": tokens(1), "b": tokens(1)})
    assert set(kept.of(["a", "x"])) == {"a"}
    kept.add({"c": tokens(1)})
    assert set(kept.of(["b", "a", "c"])) == {"a", "b", "c"}, "just as much as there is room for"
    kept.of(["a"])
    kept.add({"c": tokens(1), "d": tokens(1)})
    assert set(kept.of("abcd")) == {"a", "c", "d"}


def test_pairs_to_compare_are_spread_over_the_candidates_of_the_first_queries():
    sample = Sample()
    sample.add(request("one", "x"), np.array([1.0]))
    sample.add(request("q", *"abcdefghijklmnopqrs"), np.arange(19.0))
    sample.add(request("q", "x", "y"), np.array([5.0, 6.0]))
    sample.add(request("bad", "x", "y"), np.array([5.0, np.nan]))
    ((kept, scores),) = sample.kept
    assert scores.tolist() == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]
    assert kept.documents == list("acegikmoqs")
    for number in range(20):
        sample.add(request(f"s{number}", "x", "y"), np.array([1.0, 2.0]))
    assert len(sample.kept) == 12
