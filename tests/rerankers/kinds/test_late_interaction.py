"""MaxSim against its definition and sentence-transformers, and its memory limits."""

import numpy as np
import pytest

from rankdash.core.rerankers.kinds import late_interaction
from rankdash.core.rerankers.kinds.late_interaction import max_sim, trained_for_it
from tests.rerankers.models import ask, prepared

QUERY = "how to get a refund for the order"
DOCS = [
    "return an item within days",
    "the cat and the dog on the sofa",
    "退货 运费",
    "",
    "payment by card " * 20,
    "return an item within days",
]


def request(query=QUERY, docs=DOCS, name="q"):
    return ask(query, docs, name)


def made(model, **settings):
    return prepared("late-interaction", model, batch_tokens=40, **settings)


def vectors(folder, text, limit=32):
    """Return the last layer of the transformer, by plain transformers: one text, no padding."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    given = tokenizer(text, truncation=True, max_length=limit, return_tensors="pt")
    with torch.inference_mode():
        return model(**given).last_hidden_state[0].double().numpy()


def plain(query, document):
    """Return MaxSim by its definition, with loops."""
    total = 0.0
    for one in query:
        total += max(
            float(one @ other / np.linalg.norm(one) / np.linalg.norm(other)) for other in document
        )
    return total


@pytest.fixture(scope="module")
def encoder(bi_folder):
    return made(bi_folder)


def test_scores_are_those_of_the_definition(encoder, bi_folder):
    (found,) = encoder.score([request()])
    query = vectors(bi_folder, QUERY)
    expected = [plain(query, vectors(bi_folder, text)) for text in DOCS]
    np.testing.assert_allclose(found.scores, expected, atol=1e-4)
    assert found.scores.max() <= len(query) + 1e-6
    assert found.scores[0] == found.scores[5]
    assert found.index_seconds > 0
    assert encoder.details()["trained_for_late_interaction"] is False
    assert "experiment" in late_interaction.KIND.meaning


def test_portions_and_what_is_kept_change_nothing(bi_folder, monkeypatch):
    """Each long text is a separate portion; its truncated part counts only by its length."""
    docs = [*DOCS, *(f"{text} {'card ' * 15_000}" for text in ("the cat", "return", "the cat"))]
    requests = [request(docs=docs), request("the cat", docs[::-1], "p")]
    expected = [made(bi_folder).score([request(each.query, [doc])])[0].scores[0]
                for each in requests for doc in each.documents]  # fmt: skip
    monkeypatch.setattr(late_interaction, "KEPT_BYTES", 3000)
    small = made(bi_folder)
    for _ in range(2):
        found = np.concatenate([scored.scores for scored in small.score(requests)])
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_of_the_documents_kept_those_used_last_stay(bi_folder, monkeypatch):
    """The limit is three documents, of three tokens each."""
    size = vectors(bi_folder, "cat").astype(np.float32).nbytes
    monkeypatch.setattr(late_interaction, "KEPT_BYTES", 3 * size)
    encoder = made(bi_folder)

    def kept(*docs):
        return encoder.score([request(docs=docs)])[0].tokens_computed == query

    encoder.score([request(docs=["cat", "dog"])])
    query = encoder.score([request(docs=["cat", "dog"])])[0].tokens_computed
    assert not kept("sofa") and kept("dog", "cat", "sofa")
    assert kept("cat") and not kept("sofa", "card")
    assert kept("cat") and kept("sofa") and kept("card") and not kept("dog")


def test_an_approximate_runtime_tells_how_far_it_agrees(bi_folder):
    reranker = made(bi_folder, runtime="onnx-int8")
    reranker.score([request()])
    told = reranker.details()
    assert -1 <= told["rank_agreement"] <= 1
    assert reranker.fingerprint() != made(bi_folder).fingerprint()


@pytest.fixture(scope="module")
def colbert(bi_folder, tmp_path_factory):
    """A model with the configuration of late interaction: transformer, projection, mask."""
    import torch
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
    from sentence_transformers.sentence_transformer.modules import Transformer

    torch.manual_seed(5)
    modules = [
        Transformer(str(bi_folder)),
        Dense(32, 8, bias=False, module_input_name="token_embeddings"),
        MultiVectorMask(skiplist_words=["the"]),
        Normalize(module_input_name="token_embeddings"),
    ]
    folder = tmp_path_factory.mktemp("colbert")
    model = MultiVectorEncoder(modules=modules, device="cpu")
    model.save_pretrained(str(folder))
    return folder, model


def test_a_trained_model_is_run_as_it_was_trained(colbert, bi_folder):
    folder, model = colbert
    assert trained_for_it(folder) and not trained_for_it(bi_folder)
    reranker = made(folder)
    assert reranker.details()["trained_for_late_interaction"] is True
    docs = DOCS[:4]
    (found,) = reranker.score([request(docs=docs)])
    query = np.asarray(model.encode_query([QUERY], show_progress_bar=False)[0])
    documents = model.encode_document(docs, show_progress_bar=False)
    expected = [plain(query, np.asarray(document)) for document in documents]
    np.testing.assert_allclose(found.scores, expected, atol=1e-4)
    assert found.tokens is None


def test_max_sim_by_hand():
    query = np.array([[1, 0], [0, 1]], dtype=np.float32)
    one = np.array([[1, 0], [0.6, 0.8]], dtype=np.float32)
    none = np.zeros((0, 2), dtype=np.float32)
    assert max_sim(query, [none, one, one[:1], none]) == pytest.approx([-2, 1.8, 1, -2])
    assert max_sim(query, []).shape == (0,)
