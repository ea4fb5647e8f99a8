"""Graphs made from a model's files, compared with PyTorch; models that only PyTorch runs."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from rankdash.core.rerankers.neural import export, open_model, packaged, runtimes
from rankdash.core.rerankers.neural.bert_graph import BertGraph
from rankdash.core.rerankers.neural.export import sample_rows
from rankdash.core.rerankers.neural.runtimes import Batching, compute, compute_each

PAIR = [
    *("a refund, Please", "the CAT naïve", "退款 an order", "[MASK] zzz [SEP]", ""),
    "a\u00a0b\u200b\ufffd\tc\x00d",
]


def changed(folder, to, file, **values):
    """Return a copy of a model with some values of a JSON file changed; None removes one."""
    copy = shutil.copytree(folder, to / "copy")
    told = json.loads((copy / file).read_text()) if (copy / file).is_file() else {}
    kept = {name: value for name, value in {**told, **values}.items() if value is not None}
    (copy / file).write_text(json.dumps(kept))
    return copy


def agrees(purpose, folder, tmp_path, runtime="onnx"):
    graph = BertGraph.read(purpose, folder)
    models = []
    how = {"runtime": "torch", "device": "cpu", "max_length": 0, "batch_tokens": 0}
    opened = open_model.open_model(purpose, folder, "", how, models.append)
    card = opened.card
    assert dataclasses.replace(graph.card, difference=0.0, inputs=card.inputs) == card
    from tokenizers import Tokenizer

    backend = Tokenizer.from_str(models[0].tokenizer.backend_tokenizer.to_str())
    backend.no_padding()
    backend.no_truncation()
    for text in PAIR:
        for pair in ((text,), (text, PAIR[0])):
            one, other = graph.tokenizer.encode(*pair), backend.encode(*pair)
            assert (one.ids, one.type_ids) == (other.ids, other.type_ids)
    path = tmp_path / "model.onnx"
    assert np.isnan(graph.write(path))
    rows = sample_rows(card, graph.tokenizer.get_vocab_size(), 12, 60)
    typed = "token_type_ids" in card.inputs
    types = [(np.arange(len(row)) > len(row) // 2).astype(np.int64) * typed for row in rows]
    results = []
    for each in (
        runtimes.open_exported(runtime, path, graph.card.inputs),
        opened.runtime,
    ):
        how = each.forward, Batching(120, card.padding)
        if purpose == "tokens":
            results.append(np.concatenate(compute_each(rows, types, *how)))
        else:
            results.append(compute(rows, types, *how))
    found, expected = results
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=5e-6 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("runtime", ["onnx", "openvino"])
def test_a_cross_encoder_gives_the_logits_of_pytorch(cross_folder, tmp_path, runtime):
    agrees("pair", cross_folder, tmp_path, runtime)


@pytest.mark.parametrize("mode", ["mean", "cls"])
@pytest.mark.parametrize("normalized", [True, False])
def test_a_bi_encoder_gives_the_vectors_of_pytorch(bi_folder, tmp_path, mode, normalized):
    folder = changed(
        bi_folder, tmp_path, "1_Pooling/config.json",
        pooling_mode_mean_tokens=mode == "mean", pooling_mode_cls_token=mode == "cls",
    )  # fmt: skip
    if normalized:
        modules = json.loads((folder / "modules.json").read_text())
        kind = "sentence_transformers.models.Normalize"
        modules.append({"idx": 2, "name": "2", "path": "2_Normalize", "type": kind})
        (folder / "modules.json").write_text(json.dumps(modules))
    agrees("text", folder, tmp_path)


def test_the_tokens_of_a_text_are_those_of_pytorch(bi_folder, tmp_path):
    agrees("tokens", bi_folder, tmp_path)


@pytest.mark.parametrize(
    ("purpose", "mode", "alone"),
    [("pair", "", True), ("text", "cls", True), ("text", "mean", False), ("tokens", "", False)],
)
def test_the_last_layer_computes_only_the_token_that_the_output_is_of(
    cross_folder, bi_folder, tmp_path, purpose, mode, alone
):
    import onnx
    import onnxruntime

    folder = cross_folder if purpose == "pair" else bi_folder
    if mode:
        pooling = {f"pooling_mode_{mode}_token{'s' * (mode == 'mean')}": True}
        folder = changed(folder, tmp_path, "1_Pooling/config.json", **{
            "pooling_mode_mean_tokens": None, **pooling,
        })  # fmt: skip
    path = tmp_path / "model.onnx"
    BertGraph.read(purpose, folder).write(path)
    model = onnx.load(path, load_external_data=False)
    inner = [node.output[0] for node in model.graph.node if node.op_type == "Erf"]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in inner)
    path.write_bytes(model.SerializeToString())
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    row = np.full((3, 7), 5, dtype=np.int64)
    given = {"input_ids": row, "attention_mask": row * 0 + 1, "token_type_ids": row * 0}
    first, last = session.run(inner, given)
    assert (first.shape[1], last.shape[1]) == (7, 1 if alone else 7)


def kept(folder, weights):
    graph = BertGraph.read("pair", folder)
    return export.keep("pair", weights, graph.card, graph.tokenizer, graph.write)


@pytest.mark.parametrize("damage", ["changed", "gone"])
@pytest.mark.parametrize("name", ["model.onnx", "model.weights", "tokenizer.json", "card.json"])
def test_an_exported_file_that_changed_or_went_is_made_again(
    cross_folder, tmp_path, monkeypatch, name, damage
):
    monkeypatch.setenv("RANKDASH_CACHE", str(tmp_path))
    made = kept(cross_folder, "a" * 64)
    assert export.find("pair", "a" * 64) == made
    file = made.folder / name
    content = bytearray(file.read_bytes())
    before = bytes(content)
    content[len(content) // 2] ^= 1
    file.unlink() if damage == "gone" else file.write_bytes(content)
    assert export.find("pair", "a" * 64) is None
    assert kept(cross_folder, "a" * 64).folder == made.folder
    assert file.read_bytes() == before
    assert list(made.folder.parent.iterdir()) == [made.folder]
    held = sum(each.nbytes for each in BertGraph.read("pair", cross_folder).tensors.values())
    sizes = {each.name: each.stat().st_size for each in made.folder.iterdir()}
    assert sizes["model.onnx"] < held / 2 < sizes["model.weights"], "the weights are beside it"


@pytest.mark.model
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(each, id=each.id, marks=[] if "ms-marco" in each.id else pytest.mark.thorough)
        for each in packaged.MODELS
    ],
)
def test_a_packaged_model_gives_the_scores_or_vectors_of_pytorch(model, tmp_path):
    purpose = "pair" if "ms-marco" in model.id else "text"
    agrees(purpose, packaged.folder_of(model), tmp_path)


def test_prompts_and_lengths_are_those_that_pytorch_finds(bi_folder, tmp_path):
    told = {
        "prompts": {"query": "q: ", "passage": "p: ", "other": "o"},
        "default_prompt_name": None,
    }
    folder = changed(bi_folder, tmp_path, "config_sentence_transformers.json", **told)
    (folder / "sentence_bert_config.json").write_text("{}")
    agrees("text", folder, tmp_path)
    assert BertGraph.read("text", folder).card.prompts == {"query": "q: ", "document": "p: "}


UNUSUAL = {
    "config.json": [
        *({"hidden_act": "relu"}, {"position_embedding_type": "relative_key"}),
        *({"is_decoder": True}, {"model_type": "roberta"}, {"auto_map": {"AutoModel": "own.M"}}),
        *({"hidden_size": 64}, {"num_hidden_layers": 1}, {"num_hidden_layers": 3}),
        {"layer_norm_eps": None},
    ],
    # If a tokenizer has no class, PyTorch uses one token type for both texts of a pair.
    "tokenizer_config.json": [
        *({"do_lower_case": False}, {"tokenizer_class": "XLMRobertaTokenizer"}),
        {"tokenizer_class": "PreTrainedTokenizerFast"},
        *({"model_input_names": ["input_ids"]}, {"model_max_length": None}),
    ],
    "modules.json": [{}],
    "1_Pooling/config.json": [
        *({"pooling_mode_mean_tokens": False}, {"pooling_mode_max_tokens": True}),
        *({"include_prompt": False}, {"pooling_mode": "lasttoken"}),
    ],
    "sentence_bert_config.json": [{"do_lower_case": True}, {"backend": "other"}],
}


@pytest.mark.parametrize(
    ("file", "values"), [(file, values) for file, each in UNUSUAL.items() for values in each]
)
def test_whatever_is_not_bert_as_published_is_left_to_pytorch(
    cross_folder, bi_folder, tmp_path, file, values
):
    of_texts = file.startswith(("1_Pooling", "sentence"))
    purpose, folder = ("text", bi_folder) if of_texts else ("pair", cross_folder)
    assert BertGraph.read(purpose, folder).pooling == ("mean" if of_texts else "")
    assert BertGraph.read(purpose, changed(folder, tmp_path, file, **values)) is None


def test_other_modules_classes_and_weights_are_left_to_pytorch(
    bi_folder, cross_folder, classifier_folder, tmp_path
):
    from safetensors.numpy import load_file, save_file

    assert BertGraph.read("pair", classifier_folder) is None
    assert BertGraph.read("text", cross_folder) is None
    assert BertGraph.read("pair", bi_folder) is None
    for name, change in (
        ("more", lambda tensors: tensors | {"adapter.weight": np.zeros(2, np.float32)}),
        ("fewer", lambda tensors: dict(list(tensors.items())[1:])),
    ):
        folder = shutil.copytree(cross_folder, tmp_path / name)
        save_file(change(load_file(folder / "model.safetensors")), folder / "model.safetensors")
        assert BertGraph.read("pair", folder) is None
    (folder / "model.safetensors").write_bytes(b"\x00" * 30)
    assert BertGraph.read("pair", folder) is None
    dense = shutil.copytree(bi_folder, tmp_path / "dense")
    modules = json.loads((dense / "modules.json").read_text())
    modules.append({"idx": 2, "name": "2", "path": "2", "type": "sentence_transformers.Dense"})
    (dense / "modules.json").write_text(json.dumps(modules))
    assert BertGraph.read("text", dense) is None
