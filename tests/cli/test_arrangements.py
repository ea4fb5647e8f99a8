"""The same labels and rankings in other arrangements of files, in Python; the output of commands is
in `approved/cli/arrangements.txt`."""

import math
import warnings

import pytest

import rankdash as rd

LABELS = "q1 0 d1 2\nq1 0 d2 1\nq1 0 d3 0\nq2 0 d1 1\nq2 0 d4 0\n"
FIRST = "q1 Q0 d3 1 3 x\nq1 Q0 d2 2 2 x\nq1 Q0 d1 3 1 x\nq2 Q0 d4 1 2 x\nq2 Q0 d1 2 1 x\n"
GRADES = "query_id,doc_id,score\nq1,d1,3\nq1,d2,2\nq1,d3,1\nq2,d1,3\nq2,d4,2\nq2,d9,1\n"
# NDCG with linear gain by hand: q1 has labels 0, 1, 2 in this order, q2 0, 1.
WORST = ((1 / math.log2(3) + 2 / math.log2(4)) / (2 + 1 / math.log2(3)) + 1 / math.log2(3)) / 2
TEXTS = (("apple pie", "bake it"), ("bread", "knead it"), ("cake", "whisk it"))


@pytest.fixture
def write(tmp_path):
    def written(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    return written


@pytest.mark.parametrize("order", [TEXTS, TEXTS[::-1], TEXTS[1:]])
def test_a_run_by_text_in_another_order_is_of_the_same_queries(write, order):
    lines = [f"{query},{text},1\n{query},sell the {query},0\n" for query, text in TEXTS]
    labels = write("labels.csv", f"query,document,label\n{''.join(lines)}")
    lines = [f"{query},{text},0.75\n{query},sell the {query},0.5\n" for query, text in order]
    run = write("run.csv", f"query,document,score\n{''.join(lines)}")
    with pytest.warns(UserWarning, match="so BM25 ordered the documents that they list"):
        data = rd.read(labels)
    with warnings.catch_warnings():
        # A missing query causes a warning.
        warnings.simplefilter("ignore" if len(order) < len(TEXTS) else "error")
        evaluation = rd.evaluate(data, rd.read_run(run, data), metrics="ndcg@10")
    assert evaluation.mean("ndcg@10") == pytest.approx(len(order) / len(TEXTS))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_whole_scores_beside_labels_are_scores_and_no_more_labels(write):
    folder = write("set/labels.qrels", LABELS).parent
    write("set/initial.trec", FIRST)
    graded = write("set/llm.csv", GRADES)
    data = rd.read(folder)
    assert len(data.qrels) == 5
    assert rd.evaluate(data, metrics="ndcg@10").mean("ndcg@10") == pytest.approx(WORST)
    for each in (data, rd.read(folder / "labels.qrels", retrieval="rows")):
        assert rd.evaluate(each, rd.read_run(graded, each), "ndcg@10").mean("ndcg@10") == 1
