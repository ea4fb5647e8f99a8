"""`SentenceEvaluator` returns the values that rankdash computes for the same scores."""

import json
import warnings

import numpy as np
import pytest
import torch

import rankdash as rd
from rankdash.core.rerankers.neural.evaluator import RESULTS
from tests.test_api import SAMPLE

pytestmark = pytest.mark.model


class Pairs:
    """A cross-encoder that counts common words."""

    def predict(self, pairs, **_settings):
        return np.array([self.score(*pair) for pair in pairs])

    @staticmethod
    def score(query: str, document: str) -> float:
        return len({*query.lower().split()} & {*document.lower().split()}) / len(document)


class Embeddings:
    """A bi-encoder of letters."""

    calls = 0

    def encode(self, texts, **_settings):
        self.calls += len(texts)
        return torch.tensor([[text.count(each) for each in "aeiou"] for text in texts]).float()

    def similarity(self, one, other):
        return torch.nn.functional.normalize(one) @ torch.nn.functional.normalize(other).T


@pytest.fixture(scope="module")
def data() -> rd.Dataset:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rd.read(SAMPLE)


def by_hand(data: rd.Dataset, depth: int, score) -> rd.Run:
    """Return the run with the first `depth` candidates ordered by a score, as a dictionary."""
    queries, documents = data.query_text(), data.document_text()
    lists: dict[str, dict[str, float]] = {}
    for query in data.candidates.query_ids:
        docs, _ = data.candidates.documents_of(query)
        scores = {doc: score(queries[query], documents[doc]) for doc in docs[:depth]}
        ranked = sorted(scores, key=lambda doc: -scores[doc])
        lists[query] = {doc: -float(rank) for rank, doc in enumerate([*ranked, *docs[depth:]])}
    return rd.read_run(lists, data)


def test_the_values_are_those_of_evaluate_and_compare(data, tmp_path):
    evaluator = rd.SentenceEvaluator(data, "ndcg@10, map", depth=7, name="shop")
    values = evaluator(Pairs(), output_path=str(tmp_path / "eval"), epoch=1.0, steps=20)
    first = rd.evaluate(data, metrics="ndcg@10, map")
    found = rd.evaluate(data, by_hand(data, 7, Pairs.score), "ndcg@10, map")
    row = rd.compare({"first": first, "model": found}).row("model", "ndcg@10")
    assert evaluator.primary_metric == "shop_ndcg@10"
    assert values["shop_ndcg@10"] == pytest.approx(found.mean("ndcg@10"), abs=1e-12)
    assert values["shop_map_base"] == first.mean("map")
    ends = ("delta", "delta_low", "delta_high")
    assert [values[f"shop_ndcg@10_change{end}"] for end in ("", "_low", "_high")] == pytest.approx(
        [row[end] for end in ends], abs=1e-12
    )
    assert values["shop_ndcg@10_low"] < values["shop_ndcg@10"] < values["shop_ndcg@10_high"]
    (line,) = (tmp_path / "eval" / RESULTS).read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == {"epoch": 1.0, "steps": 20, **values}


def test_a_bi_encoder_encodes_each_text_once(data):
    model = Embeddings()
    values = rd.SentenceEvaluator(data, depth=5)(model)
    assert 0 < values["helpcentre_ndcg@10"] < 1
    assert model.calls <= len(data.queries) + len(data.documents)


def test_it_is_an_evaluator_of_sentence_transformers(data):
    from sentence_transformers.base.evaluation import SentenceEvaluator

    evaluator = rd.SentenceEvaluator(data)
    assert isinstance(evaluator, SentenceEvaluator)
    assert isinstance(evaluator, rd.SentenceEvaluator)
    assert evaluator.get_config_dict()["data_id"] == data.id


@pytest.mark.thorough
def test_a_trainer_chooses_its_best_checkpoint_by_it(data, tmp_path):
    datasets = pytest.importorskip("datasets", reason="the tool datasets is not installed")
    pytest.importorskip("accelerate", reason="the tool accelerate is not installed")
    from sentence_transformers.cross_encoder import CrossEncoder, losses
    from sentence_transformers.cross_encoder.trainer import CrossEncoderTrainer
    from sentence_transformers.cross_encoder.training_args import CrossEncoderTrainingArguments
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    words = sorted({word for text in data.document_text() for word in text.lower().split()})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words[:500]]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(vocabulary), intermediate_size=16, num_labels=1, **size)
    BertForSequenceClassification(config).save_pretrained(tmp_path / "model")
    BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path / "model")
    model = CrossEncoder(str(tmp_path / "model"))
    evaluator = rd.SentenceEvaluator(data, depth=3, name="help")
    rows = {"query": ["return", "refund"], "document": ["return it", "no"], "label": [1.0, 0.0]}
    settings = {"report_to": [], "use_cpu": True, "load_best_model_at_end": True}
    arguments = CrossEncoderTrainingArguments(
        str(tmp_path / "out"), num_train_epochs=2, eval_strategy="epoch", save_strategy="epoch",
        metric_for_best_model=f"eval_{evaluator.primary_metric}", **settings,
    )  # fmt: skip
    trainer = CrossEncoderTrainer(
        model, arguments, datasets.Dataset.from_dict(rows),
        loss=losses.BinaryCrossEntropyLoss(model), evaluator=evaluator,
    )  # fmt: skip
    trainer.train()
    lines = (tmp_path / "out" / "eval" / RESULTS).read_text(encoding="utf-8").splitlines()
    values = [json.loads(line)["help_ndcg@10"] for line in lines]
    assert len(values) == 2
    assert trainer.state.best_metric == max(values)


def test_other_models_and_data_without_texts_are_refused(data):
    evaluator = rd.SentenceEvaluator(data, depth=2)
    with pytest.raises(rd.RankdashError, match="neither predict nor encode"):
        evaluator(object())

    class Constant:
        """A cross-encoder that returns the same for each pair."""

        def __init__(self, returned):
            self.returned = returned

        def predict(self, pairs, **_options):
            return np.full((len(pairs), *np.shape(self.returned)), self.returned)

    with pytest.raises(rd.RankdashError, match="more than one score"):
        evaluator(Constant([1.0, 1.0, 1.0]))
    with pytest.raises(rd.RankdashError, match="not finite"):
        evaluator(Constant(np.nan))
    textless = rd.read({"q1": {"a": 1, "b": 0}}, {"q1": {"b": 0.75, "a": 0.5}})
    with pytest.raises(rd.RankdashError, match="no texts"):
        rd.SentenceEvaluator(textless)
