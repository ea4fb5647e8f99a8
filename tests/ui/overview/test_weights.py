"""Pages with means per search: named in the line under the title, or refused with a way back."""

import pytest

from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from tests.stored import keep_rows
from tests.ui.conftest import ROWS, lists_at
from tests.ui.page_text import page_text
from tests.ui.sessions import press, whole

HEAD, *LINES = ROWS.splitlines()
COUNTED = "\n".join(
    [f"{HEAD},frequency", *(f"{line},{3 + int(line[1:].split(',')[0])}" for line in LINES)]
)


def opened(workspace, page, rows, **settings):
    dataset_id = keep_rows(workspace, rows, "Shop")
    run = run_from_ranking("better", dataset_id, Ranking.from_lists(lists_at(0)), "better.trec")
    workspace.save_run(run)
    return whole(page, data=dataset_id, weights="per search", **settings)


@pytest.mark.parametrize("page", ["overview", "queries", "cost", "rank_shifts", "report"])
def test_a_page_names_means_per_search(workspace, page):
    drawn = opened(workspace, page, COUNTED)
    assert any("NDCG@10 per search" in each.value for each in (*drawn.caption, *drawn.markdown))


@pytest.mark.parametrize(
    "page", ["overview", "cost", "report", "queries", "history", "rank_shifts"]
)
def test_a_page_names_a_small_effective_number_of_queries(workspace, page):
    skewed = COUNTED.replace(",3\n", ",9000\n").replace(",4\n", ",9000\n")
    drawn = opened(workspace, page, skewed)
    assert not drawn.exception
    if page in ("overview", "cost"):
        text = page_text(drawn)
        assert "effective number is 2" in text
        assert "Label more queries, or use the weights “per query”." in text


def test_frequencies_are_not_a_segment(workspace):
    dataset_id = keep_rows(workspace, COUNTED, "Shop")
    assert workspace.dataset(dataset_id).segments == ["kind"]


def test_without_frequencies_the_page_says_why_and_offers_the_way_back(workspace):
    drawn = opened(workspace, "overview", ROWS)
    assert [each.value for each in drawn.info if "no column frequency" in each.value]
    press(drawn, "Compute means per query")
    assert "weights" not in drawn.query_params
    assert not [each for each in drawn.info if "frequency" in each.value]


def test_a_test_without_a_weighted_version_is_refused_in_words(workspace):
    drawn = opened(workspace, "overview", COUNTED, test="wilcoxon")
    assert [each.value for each in drawn.info if "Wilcoxon" in each.value]


def test_policies_are_refused_in_words(workspace):
    drawn = opened(workspace, "policy", COUNTED)
    assert [each.value for each in drawn.info if "not per search" in each.value]
