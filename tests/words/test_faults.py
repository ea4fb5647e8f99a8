"""What a fault rests on, in one line, for every fault there is."""

import pytest

from rankdash.analysis.reasons.fault import FAULTS, LABELS_SAY_TOO_LITTLE, fault
from rankdash.i18n import speaking
from rankdash.study.queries import Blame, Missed
from rankdash.words.faults import fault_words, ground, place

NOWHERE, FIRST, THIRD = Missed("a"), Missed("b", "first", 1), Missed("c", "dense", 3)


@pytest.mark.parametrize(
    ("numbers", "missed", "unlabelled", "said"),
    [
        ((0.2, 0.2, 0.4, 1.0), (NOWHERE, NOWHERE), 0, ": retriever 0.600, reranker 0.200. 2 "
         "relevant documents were not retrieved."),
        ((0.2, 0.2, 0.4, 1.0), (FIRST,), 0, ": retriever 0.600, reranker 0.200. 1 relevant "
         "document has rank 1 in FIRST and is not in this run."),
        ((0.2, 0.2, 0.4, 1.0), (THIRD, NOWHERE, FIRST), 0, ": retriever 0.600, reranker 0.200. 2 "
         "relevant documents are in the lists of other systems and not in this run; the highest "
         "has rank 1 in FIRST. 1 relevant document was not retrieved."),
        ((0.2, 0.2, 0.4, 1.0), (), 0, ": retriever 0.600, reranker 0.200. Relevant documents rank "
         "below the reranked depth."),
        ((0.2, 0.2, 1.0, 1.0), (), 0, ". A better order of the same documents would gain it."),
        ((0.2, 0.9, 1.0, 1.0), (), 1, ": labels 0.700, reranker 0.100. 1 document without a label "
         "stands above relevant ones."),
        # A part that would be written as nothing is none.
        ((0.2, 0.2, 0.9996, 1.0), (NOWHERE,), 0, ". A better order of the same documents would "
         "gain it."),
        ((0.2, 0.2, 0.9994, 1.0), (NOWHERE,), 0, ": reranker 0.799, retriever 0.001. A better "
         "order of the same documents would gain it."),
        ((0.2, 0.5, 0.7, 1.0), (NOWHERE,), 3, ": retriever 0.300, labels 0.300, reranker 0.200."),
    ],
)  # fmt: skip
def test_the_ground_splits_the_loss_and_says_what_the_largest_part_comes_from(
    numbers, missed, unlabelled, said
):
    blame = Blame(fault(*numbers), 3, missed, unlabelled)
    assert ground(blame, "NDCG@10", str.upper) == f"NDCG@10 is 0.800 below a perfect ranking{said}"


def test_what_is_not_lost_and_what_labels_do_not_tell():
    perfect = Blame(fault(1.0, 1.0, 1.0, 1.0), 3, (), 0)
    assert ground(perfect, "MAP", str) == (
        "MAP is as high as a perfect ranking, or within the tie band."
    )
    assert ground(Blame(LABELS_SAY_TOO_LITTLE, 0, (), 0), "MAP", str) == (
        "No document is labelled as relevant, so nothing certain can be said of the value."
    )
    assert ground(Blame(LABELS_SAY_TOO_LITTLE, 1, (NOWHERE,), 0), "MAP", str) == (
        "No document that is shown has a label, so nothing certain can be said of the value."
    )


def test_a_missed_document_names_its_rank_elsewhere():
    assert place(FIRST, str.upper) == "rank 1 in FIRST, not in this run"
    assert place(NOWHERE, str.upper) == "in no ranking"


def test_every_fault_has_a_word():
    assert set(fault_words()) == set(FAULTS)


def test_the_parts_are_listed_as_the_language_does():
    with speaking("zh"):
        assert "0.700、" in ground(Blame(fault(0.2, 0.9, 1.0, 1.0), 3, (), 1), "NDCG@10", str)
