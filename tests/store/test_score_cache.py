"""Scores that outlive their run: exact, limited in size, and without effect on other work."""

import math
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rankdash.core.base.errors import StoreError
from rankdash.core.workspace import database
from rankdash.core.workspace.score_cache import KeptScores, ScoreCache
from tests.store.builders import ask


@pytest.fixture
def file(tmp_path):
    return tmp_path / "scores.sqlite"


@pytest.fixture
def cache(file):
    return ScoreCache(file)


def found(scores, read=-1):
    scores = np.asarray(scores, dtype=np.float64)
    counts = np.full(len(scores), read, dtype=np.int32)
    return KeptScores(scores, counts, counts + 1)


def scores(cache, fingerprint, query, documents):
    return cache.read(fingerprint, [(query, documents)])[0].scores.tolist()


def fill(cache, count, of="q", documents=50):
    """Write scores of `count` queries; return the documents."""
    names = [f"document {n}" for n in range(documents)]
    for n in range(count):
        cache.write("m", [(f"{of}{n}", names, found(np.arange(float(documents))))])
    return names


texts = st.text(st.characters(), max_size=8)
exact = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=texts, pairs=st.dictionaries(texts, exact, max_size=8))
def test_what_is_kept_comes_back_to_the_last_bit(cache, query, pairs):
    """For any text, also with lone surrogates and zero bytes; -0.0 stays -0.0."""
    cache.clear()
    cache.write("m", [(query, list(pairs), found(list(pairs.values()), read=7))])
    (kept,) = cache.read("m", [(query, [*pairs, "another document"])])
    assert kept.scores[:-1].tobytes() == np.array(list(pairs.values()), float).tobytes()
    assert math.isnan(kept.scores[-1])
    assert kept.read.tolist() == [7] * len(pairs) + [-1]
    assert kept.full.tolist() == [8] * len(pairs) + [-1]
    assert cache.pairs == len(pairs)


def test_model_query_and_document_all_tell_pairs_apart(cache):
    cache.write("m", [("ask", ["a", "b"], found([1.0, 2.0]))])
    cache.write("n", [("ask", ["a"], found([3.0]))])
    cache.write("m", [("other", ["a"], found([4.0]))])
    assert scores(cache, "m", "ask", ["b", "a"]) == [2.0, 1.0]
    assert scores(cache, "n", "ask", ["a"]) == [3.0]
    assert scores(cache, "m", "other", ["a"]) == [4.0]
    # The boundary between two texts is part of the key.
    for model, query in (("ma", "sk"), ("n", "other")):
        assert np.isnan(scores(cache, model, query, ["a"])).all()


def test_what_was_not_scored_is_not_kept_and_a_new_score_replaces_the_old(cache):
    cache.write("m", [("ask", ["a", "b", "c", "d"], found([1.0, math.nan, math.inf, -math.inf]))])
    assert cache.pairs == 1
    cache.write("m", [("ask", ["a", "b"], found([5.0, 6.0]))])
    assert scores(cache, "m", "ask", ["a", "b"]) == [5.0, 6.0]


def test_answers_are_kept_by_the_same_key_within_the_same_limit(cache):
    cache.write("m", [("q", ["d"], found([1.0]))])
    cache.write_answers("m", [("q", "d", "[1]"), ("q", "e", "[2]"), ("q", "d", "[3]")])
    asked = [("q", "d"), ("q", "e"), ("q", "f"), ("p", "d")]
    assert cache.read_answers("m", asked) == ["[3]", "[2]", "", ""]
    assert cache.read_answers("n", asked) == ["", "", "", ""]
    assert scores(cache, "m", "q", ["d"]) == [1.0]
    assert cache.pairs == 3
    cache.limit = 1
    assert (cache.pairs, cache.read_answers("m", asked[:1])) == (0, [""])
    cache.limit = 0
    cache.write_answers("m", [("q", "d", "x")])
    assert cache.pairs == 0
    cache.limit = 10**9
    cache.write_answers("m", [("q", "d", "x")])
    cache.clear()
    assert (cache.pairs, cache.read_answers("m", asked[:1])) == (0, [""])


# Data on the disk.


def test_a_score_or_an_answer_that_changed_on_the_disk_is_not_cached(cache, file):
    cache.write("m", [("ask", ["a", "b"], found([5.0, 6.0]))])
    cache.write_answers("m", [("ask", "a", "yes"), ("ask", "b", "no")])
    ask(file, "UPDATE pairs SET score = score + 1 WHERE score = (SELECT max(score) FROM pairs)")
    ask(file, "UPDATE answers SET answers = 'yet' WHERE answers = 'yes'")
    kept = scores(cache, "m", "ask", ["a", "b"])
    assert kept[0] == 5.0 and math.isnan(kept[1])
    assert cache.read_answers("m", [("ask", "a"), ("ask", "b")]) == ["", "no"]


def test_scores_that_an_earlier_version_cached_are_used(cache, file):
    cache.write("m", [("ask", ["a"], found([5.0]))])
    cache.write_answers("m", [("ask", "a", "yes")])
    for table in ("pairs", "answers"):
        ask(file, f"ALTER TABLE {table} DROP COLUMN checksum")
    again = ScoreCache(file)
    assert scores(again, "m", "ask", ["a"]) == [5.0]
    assert again.read_answers("m", [("ask", "a")]) == ["yes"]
    again.write("m", [("ask", ["b"], found([6.0]))])
    assert scores(again, "m", "ask", ["a", "b"]) == [5.0, 6.0]


def test_a_damaged_or_deleted_cache_starts_afresh(workspace):
    fill(workspace.score_cache, 1)
    file = workspace.root / "scores.sqlite"
    file.unlink()
    assert workspace.score_cache.pairs == 0
    for each in workspace.root.glob("scores.sqlite*"):
        each.unlink()
    file.write_bytes(b"this is no database, and was none for long" * 100)
    names = fill(workspace.score_cache, 1)
    assert scores(workspace.score_cache, "m", "q0", names) == list(map(float, range(50)))
    (moved,) = workspace.root.glob("trash/*/scores.sqlite")
    assert moved.read_bytes().startswith(b"this is no database")


def test_a_file_that_is_in_use_is_no_damaged_one(cache, file, monkeypatch):
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match="in use by another program"):
            ScoreCache(file)
        db.execute("ROLLBACK")
    assert not (file.parent / "trash").exists()
    assert ScoreCache(file).pairs == 0


def test_several_threads_may_write_and_read_at_once(file):
    def kept(number):
        cache = ScoreCache(file)
        names = fill(cache, 10, f"{number}-")
        return [scores(cache, "m", f"{number}-{n}", names)[-1] for n in range(10)]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(kept, range(4))) == [[49.0] * 10] * 4
    assert ScoreCache(file).pairs == 4 * 10 * 50


# The limit.


def test_over_the_limit_what_was_used_longest_ago_goes(cache, file):
    names = fill(cache, 40)
    full = cache.size_bytes
    scores(cache, "m", "q0", names)
    cache.limit = full // 2
    assert cache.size_bytes <= full // 2
    assert 0 < cache.pairs < 2000
    gone = {query: np.isnan(scores(cache, "m", query, names)) for query in ("q0", "q1", "q39")}
    assert not gone["q0"].any() and gone["q1"].all() and not gone["q39"].any()
    assert file.stat().st_size <= 0.75 * full
    fill(cache, 40, "more ")
    assert cache.size_bytes <= full // 2
    assert ScoreCache(file).limit == full // 2


def test_the_limit_set_last_counts_and_is_half_a_gigabyte_before(cache, file):
    assert cache.limit == 512 * 1024 * 1024
    fill(cache, 60)
    cache.limit = cache.size_bytes
    # At exactly the limit nothing is deleted.
    assert cache.pairs == 3000
    cache.limit = limit = cache.size_bytes - 1
    # A tenth of the limit is free then, and every query in the table has scores.
    assert 0.8 * limit < cache.size_bytes <= 0.9 * limit
    assert ask(file, "SELECT count(*) FROM asks")[0] * 50 == cache.pairs < 3000
    with pytest.raises(StoreError, match="-1 bytes is not a limit"):
        cache.limit = -1
    assert cache.limit == limit
    cache.limit = 0
    fill(cache, 1)
    assert cache.pairs == 0


def test_of_queries_used_at_the_same_moment_the_first_goes_first(cache, file):
    names = fill(cache, 40)
    ask(file, "UPDATE asks SET used = 1.0")
    cache.limit = cache.size_bytes - 1
    assert np.isnan(scores(cache, "m", "q0", names)).all()
    assert not np.isnan(scores(cache, "m", "q39", names)).any()


def test_writing_is_use(cache, file, monkeypatch):
    for moment, query in enumerate("aba"):
        monkeypatch.setattr(time, "time", lambda moment=moment: float(moment))
        cache.write("model", [(query, ["text"], found([0.5]))])
    cache.write_answers("model", [("b", "text", "yes")])
    monkeypatch.setattr(time, "time", lambda: 9.0)
    assert cache.read_answers("model", [("b", "text")], use=False) == ["yes"]
    assert ask(file, "SELECT used FROM asks ORDER BY id") == [2.0, 2.0]


def test_clearing_gives_the_disk_back_and_keeps_the_limit(cache, file):
    cache.limit = 10_000_000
    fill(cache, 40)
    before = file.stat().st_size
    cache.clear()
    assert (cache.pairs, ask(file, "SELECT count(*) FROM asks")) == (0, [0])
    assert file.stat().st_size < before / 2
    assert cache.limit == 10_000_000
