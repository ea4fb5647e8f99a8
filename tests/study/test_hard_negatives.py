"""Hard negatives: which documents stand above a relevant one, and the file that trainers read."""

import json
import logging

import numpy as np
import pandas as pd
import pytest

from rankdash.dataset import Dataset
from rankdash.errors import DataError
from rankdash.metrics import Conventions
from rankdash.ranking.ranking import Ranking
from rankdash.reporting.exports.triplet_lines import as_json_lines
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study.caveats import NoNegatives, caveats
from rankdash.study.ranks import MOST_NEGATIVES, triplets
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, systems_of
from rankdash.words import caveats as words

DOCS = [f"d{place}" for place in range(9)]


def study_of(labels: dict[str, list[float | None]], texts: bool = True, **changes) -> Study:
    """Labels of each query in rank order; None: no label."""
    rows = [
        (query, doc, label)
        for query, row in labels.items()
        for doc, label in zip(DOCS, row, strict=False)
        if label is not None
    ]
    lists = [(q, DOCS[: len(row)], np.arange(len(row), 0, -1.0)) for q, row in labels.items()]
    said = [f'{doc} "says" {{this}}\nand 那' if texts else "" for doc in DOCS]
    data = Dataset(
        "set",
        pd.DataFrame({"query_id": [*labels], "text": [f"ask {q}" for q in labels]}),
        pd.DataFrame({"doc_id": DOCS, "title": "", "text": said}),
        pd.DataFrame(rows, columns=["query_id", "doc_id", "label"]),
        Ranking.from_lists(lists),
    )
    run = run_from_ranking("run", data.id, data.candidates, "run.trec")
    return Study.on("mrr@10", dataset=data, systems=systems_of(data, [run]), baseline=FIRST_STAGE,
                    challengers=(run.id,), **changes)  # fmt: skip


def pairs(study: Study) -> list[tuple[str, str, str]]:
    rows = triplets(study, FIRST_STAGE)[["query_id", "positive_id", "negative_id"]]
    return list(rows.itertuples(index=False, name=None))


def test_what_is_labelled_not_relevant_above_a_relevant_document_is_a_negative():
    study = study_of(
        {
            "q": [0, None, 0, 1, 0, 2],
            "perfect": [1, 0, 0],
            "unlabelled above": [None, 1],
            "none": [0, 0],
        }
    )
    assert pairs(study) == [
        *[("q", "d3", doc) for doc in ("d0", "d2")],
        *[("q", "d5", doc) for doc in ("d0", "d2", "d4")],
    ]


def test_the_threshold_says_what_is_relevant_and_the_highest_ranked_negatives_are_taken():
    assert pairs(study_of({"q": [1, 2]}, conventions=Conventions(threshold=2))) == [
        ("q", "d1", "d0")
    ]
    many = pairs(study_of({"q": [0] * 8 + [1]}))
    assert [negative for _query, _positive, negative in many] == DOCS[:MOST_NEGATIVES]


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
    warned = [each.message for each in caplog.records if each.name.startswith("sentence_")]
    assert warned == []
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
        assert words.line(study, found[0]) == (
            "The test set is too easy: all candidates of 2 of 3 queries are relevant, so no order "
            "is wrong."
        )
