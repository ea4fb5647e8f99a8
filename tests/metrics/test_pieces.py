"""Joined pieces on the disk: the values read back, and the memory freed."""

import os
import weakref

import numpy as np
import pandas as pd
import pytest

from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Judged, judge
from rankdash.core.metrics.judged import JudgedPieces


def piece(first: int, grades: list[int]) -> Judged:
    """Return queries from number `first`, one for each grade; every other one is ranked."""
    queries = [f"q{first + place}" for place in range(len(grades))]
    lists = [(query, [f"d{n}" for n in range(9)], list(range(9, 0, -1))) for query in queries]
    labels = pd.DataFrame({"query_id": queries, "doc_id": "d4", "label": grades})
    return judge(Ranking.from_lists([*lists[::2], (f"x{first}", ["d1"], [1.0])]), labels)


def same(one: Judged, other: Judged) -> bool:
    return all(
        np.array_equal(value, getattr(other, name))
        for name, value in vars(one).items()
        if name in Judged.__dataclass_fields__ and name != "highest"
    )


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return JudgedPieces()


def test_pieces_come_back_as_they_were_in_any_order(kept):
    firsts = [piece(0, [1, 0, 2]), piece(3, [0]), piece(4, [3, 1])]
    others = [piece(0, [1, 1, 2]), piece(3, [2]), piece(4, [0, 1])]
    for first, other in zip(firsts, others, strict=True):
        kept.add({"first": first, "other": other})
    assert list(kept.query_ids()) == [f"q{n}" for n in range(6)]
    for name, pieces in (("other", others), ("first", firsts), ("other", others)):
        found = list(kept.read(name))
        assert all(map(same, pieces, found))
        assert [each.highest for each in found] == [3.0] * 3


def test_memory_holds_their_ids_alone_and_the_folder_no_file(kept, tmp_path):
    made = piece(0, [1, 2, 3])
    arrays = [weakref.ref(made.label), weakref.ref(made.pool_label), weakref.ref(made.judged_rows)]
    kept.add({"one": made})
    del made
    assert [each() for each in arrays] == [None] * 3
    # If a file needs a name, it is deleted with the pieces.
    assert os.name == "nt" or list(tmp_path.iterdir()) == []
    (found,) = kept.read("one")
    assert found.label.tolist() == [1.0, 3.0]
