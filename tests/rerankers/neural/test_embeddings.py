"""Encoding, caching and counting of texts, with any model."""

import os
from pathlib import Path

import numpy as np
import pytest

from rankdash.core.rerankers.neural.cache import Embeddings, Encoded
from rankdash.core.rerankers.neural.open_model import Sample
from tests import full_disk
from tests.rerankers.models import ask

MODEL, OTHER, THIRD = (letter * 32 for letter in "abc")


def vector(*values: float, full: int = 3) -> Encoded:
    return Encoded(np.array([values], dtype=np.float32), full)


def opened(root: Path, name: str = MODEL, **limit: int) -> Embeddings:
    return Embeddings(root, name + "and more", **limit)


def files(root: Path) -> list[Path]:
    return sorted(root.glob("*/*"))


def test_embeddings_outlive_the_process_and_a_broken_file_costs_only_itself(tmp_path):
    opened(tmp_path).add(["a", "b"], [vector(1, 1), vector(2, 2)])
    opened(tmp_path).add(["c"], [vector(3, 3, full=7)])
    broken = tmp_path / MODEL / f"{OTHER}.safetensors"
    broken.write_bytes(b"no numbers")
    found = opened(tmp_path)
    assert found.of("b").vector.tolist() == [[2, 2]] and found.of("c").full == 7
    assert "d" not in found and not broken.exists()
    assert "a" not in opened(tmp_path, OTHER)


def test_many_files_of_embeddings_become_one(tmp_path):
    for value in range(30):
        opened(tmp_path).add([str(value)], [vector(value, full=value)])
    found = opened(tmp_path)
    assert all(found.of(str(value)).full == value for value in range(30))
    assert len(files(tmp_path)) < 20


@pytest.mark.parametrize(("spare", "kept"), [(0, True), (-1, False)])
def test_the_model_used_longest_ago_makes_room(tmp_path, spare, kept):
    for age, name in ((1000, OTHER), (9000, THIRD)):
        opened(tmp_path, name).add(["x"], [vector(*range(64))])
        os.utime(tmp_path / name, (age, age))
    size = sum(file.stat().st_size for file in files(tmp_path))
    limit = size * 3 // 2 + spare
    opened(tmp_path, limit_bytes=limit).add(["x"], [vector(*range(64))])
    assert (tmp_path / OTHER).exists() == kept
    assert "x" in opened(tmp_path, THIRD)
    assert "x" in opened(tmp_path)


def test_what_a_person_keeps_among_the_embeddings_is_left_alone(tmp_path):
    own = ("my vectors/vectors.npy", f"{MODEL}/vectors.safetensors", f"{OTHER}/mine.safetensors")
    theirs = [tmp_path / name for name in own]
    for file in theirs:
        file.parent.mkdir()
        file.write_bytes(b"of no model" * 100)
        os.utime(file.parent, (0, 0))
    for name in (OTHER, THIRD):
        opened(tmp_path, name, limit_bytes=10).add(["a"], [vector(1)])
    assert all(file.exists() for file in theirs)


def test_vectors_of_several_lengths_and_a_folder_that_is_none_are_kept_in_memory_alone(tmp_path):
    made = opened(tmp_path)
    made.add(["one", "two"], [vector(1), vector(1, 2)])
    assert "two" in made and files(tmp_path) == []
    (tmp_path / "file").write_text("")
    unwritable = Embeddings(tmp_path / "file", MODEL)
    unwritable.add(["one"], [vector(1)])
    assert unwritable.of("one").full == 3


def test_a_disk_that_fills_up_costs_the_cache_alone(tmp_path):
    for number in range(20):
        opened(tmp_path).add([f"known {number}"], [vector(number)])
    before = files(tmp_path)
    made = opened(tmp_path, OTHER)
    with full_disk.room_for(0):
        made.add(["one"], [vector(1)])
        again = opened(tmp_path)
    assert made.of("one").full == 3 and "known 0" in again and "known 19" in again
    assert files(tmp_path) == before


def test_pairs_to_compare_are_spread_over_the_candidates_of_the_first_queries():
    sample = Sample()
    assert sample.measure(lambda request: np.zeros(0)) == {}
    sample.add(ask("one", ["x"], "one"), np.array([1.0]))
    sample.add(ask("q", list("abcdefghijklmnopqrs"), "q"), np.arange(19.0))
    sample.add(ask("q", ["x", "y"], "q"), np.array([5.0, 6.0]))
    sample.add(ask("bad", ["x", "y"], "bad"), np.array([5.0, np.nan]))
    ((kept, scores),) = sample.kept
    assert scores.tolist() == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]
    assert kept.documents == list("acegikmoqs")
    for number in range(20):
        sample.add(ask("s", ["x", "y"], f"s{number}"), np.array([1.0, 2.0]))
    assert len(sample.kept) == 12
    exact = {id(request): scores for request, scores in sample.kept}
    same = sample.measure(lambda request: exact[id(request)])
    assert same == {"rank_agreement": 1.0, "agreement_pairs": 10 + 11 * 2}
    opposite = sample.measure(lambda request: -exact[id(request)])
    assert opposite["rank_agreement"] == -1.0
