"""What is encoded, kept and counted of texts, whatever model does it."""

import os
from pathlib import Path

import numpy as np
import pytest

from rankdash.rerankers import Request
from rankdash.rerankers.neural.embeddings import Embeddings, KeptEmbeddings
from rankdash.rerankers.neural.fidelity import Sample

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


def request(name: str, *texts: str) -> Request:
    return Request(name, name, [f"d{at}" for at in range(len(texts))], list(texts))


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
