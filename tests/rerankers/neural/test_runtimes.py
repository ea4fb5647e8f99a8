"""Every runtime on the same pairs; conversion of models; choice of a runtime and its reason."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from rankdash.core.base.errors import SettingError, UnavailableError
from rankdash.core.rerankers import base, create
from rankdash.core.rerankers.catalogue import known_models
from rankdash.core.rerankers.neural import runtimes
from rankdash.core.rerankers.neural.bert_graph import BertGraph
from rankdash.core.rerankers.neural.model_files import activation, digest
from rankdash.core.rerankers.neural.open_model import rank_correlation
from rankdash.core.rerankers.neural.packaged import fitting, misfit, with_prompts
from tests import full_disk
from tests.rerankers.models import ask, prepared, score
from tests.results import results, several
from tests.sets import ROOT

WORDS = ["return", "refund", "item", "delivery", "payment", "card", "order", "cat", "dog", "sofa"]
DRAW = np.random.default_rng(4)
REQUESTS = [
    ask(
        " ".join(DRAW.choice(WORDS, 3)),
        [" ".join(DRAW.choice(WORDS, DRAW.integers(1, 70))) for _ in range(8)],
        f"q{place}",
    )
    for place in range(5)
]


def scores(reranker, requests=REQUESTS):
    return [answer.scores for answer in reranker.score(requests)]


@pytest.fixture(scope="module")
def reference(cross_folder):
    return scores(prepared("cross-encoder", cross_folder, runtime="torch"))


@pytest.mark.parametrize("name", runtimes.KINDS)
def test_a_runtime_ranks_as_pytorch_does(name, cross_folder, reference):
    if not runtimes.installed(name):
        pytest.skip(f"{runtimes.KINDS[name].package} is optional and not installed")
    reranker = prepared("cross-encoder", cross_folder, runtime=name)
    found = scores(reranker)
    told = reranker.details()
    assert (told["runtime"], told["fingerprint"]) == (name, reranker.fingerprint())
    if runtimes.KINDS[name].exact:
        np.testing.assert_allclose(found, reference, atol=1e-5)
        assert [np.argsort(row).tolist() for row in found] == [
            np.argsort(row).tolist() for row in reference
        ]
        assert "rank_agreement" not in told
    else:
        agreements = [rank_correlation(*pair) for pair in zip(found, reference, strict=True)]
        assert 0.9 < told["rank_agreement"] <= 1
        assert told["rank_agreement"] == pytest.approx(np.mean(agreements), abs=1e-3)
        assert told["agreement_pairs"] == 40


def test_documents_of_the_same_text_tie_to_the_last_bit(cross_folder):
    onnx = prepared("cross-encoder", cross_folder, runtime="onnx")
    found = score(onnx, "card order", [*REQUESTS[0].documents, *REQUESTS[0].documents]).scores
    np.testing.assert_array_equal(found[:8], found[8:])


def test_a_full_disk_is_named_if_weights_of_8_bits_cannot_be_written(
    bi_folder, tmp_path, monkeypatch
):
    monkeypatch.setenv("RANKDASH_CACHE", str(tmp_path))
    prepared("bi-encoder", bi_folder, runtime="onnx")
    before = sorted(tmp_path.rglob("*"))
    with full_disk.room_for(0), pytest.raises(UnavailableError) as caught:
        prepared("bi-encoder", bi_folder, runtime="onnx-int8")
    assert "The 8-bit weights cannot be written to" in caught.value.message
    assert caught.value.remedy.startswith("Free space there, set RANKDASH_CACHE to a folder")
    assert sorted(tmp_path.rglob("*")) == before


def test_int8_scores_do_not_depend_on_the_other_documents(cross_folder):
    reranker = prepared("cross-encoder", cross_folder, runtime="onnx-int8")
    together = scores(reranker)[0]
    for place, text in enumerate(REQUESTS[0].documents):
        assert score(reranker, REQUESTS[0].query, [text]).scores[0] == together[place]


def test_exact_runtimes_share_a_fingerprint_and_nothing_else_does(cross_folder, classifier_folder):
    def named(**given):
        return prepared("cross-encoder", cross_folder, **given).fingerprint()

    exact = named(runtime="onnx")
    assert exact == named(runtime="torch") == named(runtime="onnx", batch_tokens=64)
    others = [
        named(runtime="torch-bf16"),
        named(runtime="onnx-int8"),
        named(runtime="onnx", max_length=20),
        named(runtime="onnx", query_prompt="q: "),
    ]
    assert len({exact, *others}) == 5 and "" not in others
    assert digest(cross_folder) != digest(classifier_folder)


SCORE = """
import socket, sys
from rankdash.core.rerankers import Corpus, Request, create
asked, heavy = [], ("torch", "transformers", "sentence_transformers")
events = ("socket.connect", "socket.getaddrinfo")
sys.addaudithook(lambda event, args: asked.append(args) if event in events else None)
reranker = create(sys.argv[1], {"model": sys.argv[2], "runtime": sys.argv[3]})
reranker.prepare(Corpus([], []))
scored = reranker.score([Request("q", "refund", ["a"], ["card order"])])[0]
print(float(scored.scores[0]), asked, [name for name in heavy if name in sys.modules])
"""


@pytest.mark.parametrize(
    ("kind", "runtime"),
    [
        ("bi-encoder", "onnx"),
        ("cross-encoder", "openvino"),
        *(pytest.param("cross-encoder", name, marks=pytest.mark.thorough)
          for name in runtimes.KINDS if name.startswith("o") and name != "openvino"),
    ],
)  # fmt: skip
def test_an_exported_model_is_scored_without_pytorch_and_tells_its_maker_nothing(
    kind, runtime, cross_folder, bi_folder, tmp_path
):
    """Telemetry is first stored in the home folder; in CI the libraries send none."""
    if not runtimes.installed(runtime):
        pytest.skip(f"{runtimes.KINDS[runtime].package} is optional and not installed")
    folder, home = cross_folder if kind == "cross-encoder" else bi_folder, tmp_path / "home"
    expected = score(prepared(kind, folder, runtime=runtime), "refund", ["card order"]).scores
    home.mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "RANKDASH_CACHE")}
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCORE, kind, str(folder), runtime],
        env=kept | {"HOME": str(home), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    value, _, rest = ran.stdout.strip().partition(" ")
    assert rest == "[] []"
    assert float(value) == pytest.approx(expected[0], abs=1e-6)
    assert list(home.rglob("*")) == []


def test_an_export_of_pytorch_is_used_unless_it_computes_something_else(
    cross_folder, reference, tmp_path, monkeypatch
):
    """An export without PyTorch: `test_bert_graph.py`."""
    import torch

    monkeypatch.setenv("RANKDASH_CACHE", str(tmp_path))
    monkeypatch.setattr(BertGraph, "read", lambda purpose, folder: None)
    write = torch.onnx.export

    def other(module, *given, **how):
        with torch.no_grad():
            module.inner.classifier.bias += 0.01
            write(module, *given, **how)
            module.inner.classifier.bias -= 0.01

    def made(runtime):
        reranker = prepared("cross-encoder", cross_folder, runtime="onnx")
        assert reranker.details()["runtime"] == runtime
        np.testing.assert_allclose(scores(reranker), reference, atol=1e-5)
        return reranker.details()

    made("onnx")
    (folder,) = (tmp_path / "models").iterdir()
    card = folder / "card.json"
    assert json.loads(card.read_text())["difference"] < 1e-5
    # A broken export is made again.
    card.write_text("{")
    monkeypatch.setattr(torch.onnx, "export", other)
    assert "differs by 0.01" in made("torch")["note"]
    assert list((tmp_path / "models").iterdir()) == [folder], "it is not kept"


def test_a_model_is_exported_and_its_runtime_measured_once(cross_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("RANKDASH_CACHE", str(tmp_path))
    steps = []
    with base.telling(steps.append):
        first = prepared("cross-encoder", cross_folder).details()
        assert runtimes.KINDS[first["runtime"]].exact
        monkeypatch.setattr(runtimes, "calibrate", lambda *_: pytest.fail("measured again"))
        again = prepared("cross-encoder", cross_folder).details()
    assert steps == ["exporting", "choosing"]
    assert again["runtime"] == first["runtime"]
    assert again["calibration"] == first["calibration"]


@pytest.mark.thorough
@pytest.mark.model
def test_a_tokenizer_written_in_python_falls_back_to_pytorch_with_a_note(tmp_path):
    import torch
    from transformers import CanineConfig, CanineForSequenceClassification, CanineTokenizer

    torch.manual_seed(0)
    config = CanineConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        num_hash_buckets=128, max_position_embeddings=128, num_labels=1, initializer_range=0.3,
        local_transformer_stride=16, downsampling_rate=4, upsampling_kernel_size=4,
    )  # fmt: skip
    CanineForSequenceClassification(config).eval().save_pretrained(tmp_path)
    CanineTokenizer(model_max_length=128).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    reranker = prepared("cross-encoder", tmp_path)
    told = reranker.details()
    assert told["runtime"] == "torch" and "could not be exported" in told["note"]
    answers = reranker.score(REQUESTS)
    assert [answer.error for answer in answers] == [""] * len(REQUESTS)


def test_a_runtime_that_is_not_installed_or_not_for_the_device_says_what_to_do(
    cross_folder, monkeypatch
):
    monkeypatch.setattr(runtimes, "installed", lambda name: name != "openvino")
    with pytest.raises(UnavailableError, match="pip install openvino"):
        prepared("cross-encoder", cross_folder, runtime="openvino")
    with pytest.raises(SettingError, match="torch-bf16"):
        prepared("cross-encoder", cross_folder, runtime="onnx", device="cuda")


def test_a_prompt_goes_around_the_text_and_its_end_is_never_cut(cross_folder):
    prompts = {"query_prompt": "order {text} card", "document_prompt": "the {text} cat"}
    prompted = prepared("cross-encoder", cross_folder, runtime="onnx", **prompts)
    plain = prepared("cross-encoder", cross_folder, runtime="onnx")
    found = score(prompted, "refund", ["item"]).scores
    same = score(plain, "order refund card", ["the item cat"]).scores
    assert found[0] == same[0]
    answer = score(prompted, "refund", ["dog " * 100])
    cut = score(plain, "order refund card", ["the " + "dog " * 56 + "cat"]).scores
    assert answer.scores[0] == pytest.approx(cut[0], abs=1e-6)
    assert answer.tokens.tolist() == [64] and answer.full.tolist() == [108]


def test_known_models_are_named_once_and_their_prompts_are_used_unless_others_are_given():
    names = [model.id for model in known_models()]
    assert len(set(names)) == len(names) >= 10
    assert {"zh", "multi"} <= {code for model in known_models() for code in model.languages}
    prompting = next(model for model in known_models() if model.query_prompt)
    filled = create("cross-encoder", {"model": prompting.id}).settings
    assert "{text}" in filled["query_prompt"] and "{text}" in filled["document_prompt"]
    own = create("cross-encoder", {"model": prompting.id, "query_prompt": "mine "}).settings
    assert own["query_prompt"] == "mine "
    unknown = {"model": "someone/else", "query_prompt": "", "document_prompt": ""}
    assert with_prompts(unknown) == unknown


MODELS = [
    *(("cross-encoder/ms-marco-MiniLM-L6-v2", language) for language in ("latin", "zh", "other")),
    *(("BAAI/bge-reranker-base", language) for language in ("zh", "ko")),
    *((model, "zh")
      for model in ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", "someone/else")),
]  # fmt: skip


def test_a_model_that_does_not_read_the_language_is_warned_of_with_one_that_does(approved):
    def better(model, language):
        fits = fitting(model, language)
        found = misfit({"model": model}, language)
        assert [each.params["better"] for each in found] == ([] if fits == model else [fits])
        return fits

    assert misfit({}, "zh") == []
    approved("rerankers/fitting", results(several("{0} for {1}", better, MODELS)))


def test_the_activation_of_a_model_is_named_and_never_applied(cross_folder, tmp_path, reference):
    assert (
        prepared("cross-encoder", cross_folder, runtime="onnx").details()["activation"] == "Sigmoid"
    )
    assert min(row.min() for row in reference) < 0
    named = {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}
    (tmp_path / "config.json").write_text(json.dumps(named))
    assert activation(tmp_path) == "Identity"


def test_no_more_threads_than_the_environment_allows(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2, 3}, raising=False)
    for limit, threads in {"": 4, "1": 1, "3": 3, "16": 4, "0": 4, "x": 4, "2,1": 4}.items():
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
        assert runtimes.threads() == threads, limit
