"""A column of ids as codes: the id of each code, missing ids, and positions of known ids."""

import numpy as np
import pyarrow as pa
import pytest

from rankdash.core.data.arrays import (
    Coded,
    alike,
    arrow_integers,
    come_in_runs,
    is_plain,
    objects,
    places_in,
    run_starts,
)
from tests.results import results, several

# Number of first rows in which runs of ids are detected; a number of ids several times as large.
SAMPLE, MANY = 4096, 700


def text(*ids: str | None) -> pa.Array:
    return pa.array(ids, type=pa.large_string())


@pytest.mark.parametrize("mixed", [False, True], ids=["in runs", "mixed"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("cuts", [None, [], [0, 6], [1, 1, 4]])
def test_ids_become_codes_in_the_order_of_first_appearance_also_in_pieces(cuts, kind, mixed):
    times = MANY if mixed else 1
    ids = ["b", "b", None, None, "a", "b", "", "a", "a"] * times
    given = pa.array(ids, type=kind)
    if cuts is not None:
        ends = zip([0, *cuts], [*cuts, len(ids)], strict=True)
        given = pa.chunked_array([given.slice(start, end - start) for start, end in ends])
    found = Coded.of(given)
    assert found.codes.tolist() == [0, 0, -1, -1, 1, 0, 2, 1, 1] * times
    assert found.codes.dtype == np.int32
    assert found.texts.equals(text("b", "a", ""))
    assert found.objects().tolist() == ids
    assert len(found) == 9 * times
    assert Coded.of(pa.chunked_array([], kind)).objects().tolist() == []


def test_some_rows_are_taken_by_place_and_by_flag():
    ids = Coded.of(text("b", "a", "b", "c"))
    for rows in (np.array([3, 0, 2]), np.array([True, False, True, True])):
        taken = ids.taken(rows)
        assert taken.objects().tolist() == np.array(["b", "a", "b", "c"])[rows].tolist()
        assert sorted(taken.texts.to_pylist()) == ["b", "c"], "without what no row has"
    assert ids.texts_of(np.array([3, 0])).equals(text("c", "b"))


def test_columns_are_joined_one_after_the_other_with_one_code_for_an_id():
    found = Coded.joined([Coded.of(text("b", "a")), Coded.of(text("a", "c", "b"))])
    assert found.codes.tolist() == [0, 1, 1, 2, 0]
    assert found.texts.equals(text("b", "a", "c"))


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64])
def test_whole_numbers_keep_their_values_and_their_order_as_arrow(kind):
    values = np.arange(-3, 9, dtype=kind)
    assert arrow_integers(values).to_pylist() == list(range(-3, 9))
    assert arrow_integers(values[::-2]).to_pylist() == [8, 6, 4, 2, 0, -2]
    wide = arrow_integers(values).type
    assert wide == (pa.int32() if kind is np.int32 else pa.int64())


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_many_ids_are_told_apart_as_arrow_tells_them(kind):
    """Ids with two equal hashes among them, and more rows than one block of hashes."""
    odd = ["cL0n95KDaaDPaaDp", "2et68tVktZ88Wu81"]
    odd += ["", "\0", "\0\0", "a", "a\0", "12345678", "12345678\0", "1234567", "文档", "é", "é"]
    draw = np.random.default_rng(3)
    ids = [
        (odd + [f"doc{n}" * (1 + n % 4) for n in range(40)])[at]
        for at in draw.integers(0, 53, 20_000)
    ]
    cut = pa.array(["x", *ids], type=kind).slice(1)
    for given in (cut, pa.chunked_array([cut.slice(0, 13), cut.slice(13, 0), cut.slice(13)])):
        found = Coded.of(given)
        assert found.objects().tolist() == ids
        assert found.texts.to_pylist() == list(dict.fromkeys(ids))


@pytest.mark.parametrize(
    ("chunks", "codes", "texts"),
    [
        ([(["b", "a"], [0, 0, 1])], [0, 0, 1], ["b", "a"]),
        ([(["b", "a"], [0, 1]), (["c", "a"], [0, 1, 0])], [0, 1, 2, 1, 2], ["b", "a", "c"]),
        ([(["a", "b"], [1, 0, 1])], [0, 1, 0], ["b", "a"]),
        ([(["a", "b", "c"], [0, 2])], [0, 1], ["a", "c"]),
        ([(["b", "a"], [0, None, 1])], [0, -1, 1], ["b", "a"]),
        ([], [], []),
    ],
    ids=["as they are", "in pieces", "in another order", "one unused", "one missing", "none"],
)
def test_codes_of_a_dictionary_are_those_of_its_texts(chunks, codes, texts):
    kind = pa.dictionary(pa.int32(), pa.string())
    made = [pa.DictionaryArray.from_arrays(pa.array(at, pa.int32()), known) for known, at in chunks]
    ids = pa.chunked_array(made, type=kind)
    found = Coded.of_dictionary(ids)
    assert found.codes.tolist() == codes
    assert found.texts.equals(text(*texts))
    assert Coded.of(ids.cast(pa.string())).codes.tolist() == codes


def test_names_are_made_once_and_nobody_changes_them():
    ids = Coded.of(text("b", "a", "b"))
    assert ids.names.tolist() == ["b", "a"]
    assert ids.names is ids.names
    with pytest.raises(ValueError, match="read-only"):
        ids.names[0] = "c"


APART, RUNS = [str(n) for n in range(SAMPLE)], [str(n // 4) for n in range(SAMPLE)]
SLICED = text("b c", "a", "é")
LONG = ["a" * 70 + end for end in "xyxzyx"] * MANY
CASES = {
    # As many, fewer known, fewer requested, one unknown, none known, none requested.
    **several(
        "places of {1!r} in {0!r}", lambda known, wanted: places_in(text(*known), text(*wanted)),
        (("abc", "cxa"), ("ab", "bxya"), ("abcd", "db"), ("abcd", "xd"), ("", "ab"), ("ab", "")),
    ),
    **{
        f"{ids} are plain": lambda ids=ids: is_plain(text(*ids))
        for ids in (["a!", "b~"], ["a", "b c"], ["a\t"], ["\x7f"], ["é"], ["", ""], [])
    },
    **{f"{size} from {at} of a slice are": lambda at=at, size=size: is_plain(SLICED.slice(at, size))
       for at, size in ((1, 1), (0, 2), (1, 2))},
    "runs start": lambda: run_starts(text("a", "a", "b", "a", None, None, "c")),
    "one run": lambda: run_starts(text("a")),
    "no run": lambda: run_starts(text()),
    # Only the first rows are read; with fewer rows runs are not detected.
    **{
        f"{name} come in runs": lambda ids=ids: come_in_runs(text(*ids))
        for name, ids in {
            "too few": APART, "single ids": [*APART, "x"], "four of each": [*RUNS, "x"],
            "four but one": ["x", *RUNS], "four of each at first": [*RUNS, *APART],
        }.items()
    },
    "longer than are hashed": lambda: Coded.of(pa.array(LONG)).codes[:7],
    "either kind of offsets": lambda: alike(pa.array(["a", "b"], type=pa.string())).equals(
        text("a", "b")
    ),
    "objects": lambda: (objects(text("a", "b")), objects(text("a", "b")).dtype == object),
    "as it is": lambda: alike(SLICED) is SLICED,
}  # fmt: skip


def test_places_and_runs_of_ids(approved):
    approved("ranking/coded", results(CASES))
