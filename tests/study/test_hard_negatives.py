"""Hard negatives: which documents rank above a relevant one, and the file that trainers read."""

import json
import logging

import pytest

from rankdash.errors import DataError
from rankdash.metrics import Conventions
from rankdash.ranking.ranking import Ranking
from rankdash.reporting.exports.triplet_lines import as_json_lines
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study.caveats import NoNegatives, caveats
from rankdash.study.ranks import MOST_NEGATIVES, triplets
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE
from rankdash.words.caveats import line
from tests.study.builders import changed, data_of, ranking, study_on

DOCS = [f"d{place}" for place in range(9)]


def study_of(labels: dict[str, list[float | None]], texts: bool = True, **given: object) -> Study:
    """Labels of each query in rank order; None: no label."""
    known = {
        query: {doc: label for doc, label in zip(DOCS, row, strict=False) if label is not None}
        for query, row in labels.items()
    }
    lists: Ranking = ranking({query: DOCS[: len(row)] for query, row in labels.items()})
    said = {doc: f'{doc} "says" {{this}}\nand 那' if texts else "" for doc in DOCS}
    data = data_of(lists, known, DOCS, said)
    asked = data.queries.assign(text=[f"ask {query}" for query in labels])
    data = changed(data, queries=asked)
    run = run_from_ranking("run", data.id, data.candidates, "run.trec")
    return study_on(data, run, metric="mrr", **given)


@pytest.mark.parametrize(
    ("labels", "threshold", "negatives"),
    [
        # What is labelled not relevant above a relevant document.
        ({"q": [0, None, 0, 1, 0, 2]}, 1, {"d3": ["d0", "d2"], "d5": ["d0", "d2", "d4"]}),
        ({"perfect": [1, 0, 0], "unlabelled above": [None, 1], "none": [0, 0]}, 1, {}),
        ({"q": [1, 2]}, 2, {"d1": ["d0"]}),
        # The highest ranked ones are taken.
        ({"q": [0] * 8 + [1]}, 1, {"d8": DOCS[:MOST_NEGATIVES]}),
    ],
)
def test_negatives_of_each_relevant_document(labels, threshold, negatives):
    study = study_of(labels, conventions=Conventions(threshold=threshold))
    rows = triplets(study, FIRST_STAGE)[["query_id", "positive_id", "negative_id"]]
    expected = [("q", doc, each) for doc, found in negatives.items() for each in found]
    assert list(rows.itertuples(index=False, name=None)) == expected


def test_the_file_has_query_positive_and_negative_in_the_order_that_a_trainer_takes():
    study = study_of({"q": [0, 1], "p": [0, 0, 1]})
    lines = as_json_lines(study, FIRST_STAGE).decode().splitlines()
    assert [list(json.loads(line)) for line in lines] == [["query", "positive", "negative"]] * 3
    assert json.loads(lines[0]) == {
        "query": "ask q",
        "positive": 'd1 "says" {this}\nand 那',
        "negative": 'd0 "says" {this}\nand 那',
    }
    assert as_json_lines(study_of({"q": [1, 0]}), FIRST_STAGE) == b""
    with pytest.raises(DataError, match="no texts"):
        as_json_lines(study_of({"q": [0, 1]}, texts=False), FIRST_STAGE)


@pytest.mark.model
def test_a_step_of_training_brings_the_positive_nearer_than_the_negative(caplog):
    """What the trainer of sentence-transformers does with the lines: its collator makes the inputs,
    in the order of the columns, and warns of an order that its losses take for another; and each
    column is an input, also one of ids."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.data_collator import (
        SentenceTransformerDataCollator,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    lines = as_json_lines(study_of({"q": [0, 1], "p": [0, 0, 1]}), FIRST_STAGE).decode()
    rows = [json.loads(line) for line in lines.splitlines()]
    known = {word for row in rows for text in row.values() for word in text.split()}
    words = Tokenizer(models.WordLevel({word: at for at, word in enumerate(sorted(known))}, "and"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    torch.manual_seed(0)
    model = SentenceTransformer(modules=[StaticEmbedding(words, embedding_dim=16)], device="cpu")

    def lead() -> float:
        query, positive, negative = (
            model.encode([row[name] for row in rows], convert_to_tensor=True)
            for name in ("query", "positive", "negative")
        )
        near = torch.nn.functional.cosine_similarity
        return float((near(query, positive) - near(query, negative)).mean())

    before = lead()
    collator = SentenceTransformerDataCollator(preprocess_fn=model.preprocess)
    with caplog.at_level(logging.WARNING):
        batch = collator(rows)
    assert [each.message for each in caplog.records if each.name.startswith("sentence_")] == []
    inputs = [key.removesuffix("_input_ids") for key in batch if key.endswith("_input_ids")]
    assert inputs == ["query", "positive", "negative"]
    features = [
        {key.removeprefix(f"{name}_"): batch[key] for key in batch if key.startswith(f"{name}_")}
        for name in inputs
    ]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    MultipleNegativesRankingLoss(model)(features, None).backward()
    optimizer.step()
    assert lead() > before + 0.01


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"a": [1, 2], "b": [1, 1], "c": [0, 1], "d": [0]}, NoNegatives(2, 3)),
        ({"a": [1, 2], "b": [0, 1], "c": [0, 1]}, None),
        ({"a": [1, None], "b": [1, 0]}, None),
        ({"a": [0], "b": [0]}, None),
    ],
)
def test_candidates_without_a_wrong_one_make_a_set_too_easy(labels, expected):
    study = study_of(labels)
    found = [each for each in caveats(study, study.challengers[0]) if isinstance(each, NoNegatives)]
    assert found == ([] if expected is None else [expected])
    if found:
        assert line(study, found[0]) == (
            "The test set is too easy: all candidates of 2 of 3 queries are relevant, so no order "
            "is wrong."
        )
