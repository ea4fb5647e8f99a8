"""Tiny models, made here and saved to a temporary folder, and services on this machine: no network,
no downloaded weights."""

from __future__ import annotations

import functools
import json
import string
from collections.abc import Iterator
from pathlib import Path

import httpcore2
import pytest

from tests.rerankers.held_clock import HeldClock
from tests.rerankers.loopback import Server, running

WORDS = [
    *("return", "refund", "item", "delivery", "country", "shipping", "time", "payment", "card"),
    *("order", "the", "a", "to", "of", "for", "how", "get", "and", "every", "within", "days"),
    *("cat", "dog", "sofa"),
]


def _vocabulary() -> list[str]:
    characters = (
        string.ascii_lowercase + string.digits + string.punctuation + "退货运费时间配送需要"
    )
    return [
        *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
        *WORDS,
        *characters,
        *(f"##{character}" for character in characters),
    ]


def _config(**changes):
    from transformers import BertConfig

    # Weights far from zero, so that different texts get clearly different scores.
    return BertConfig(
        vocab_size=len(_vocabulary()),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.3,
        **changes,
    )


def _save_tokenizer(folder: Path) -> None:
    from transformers import BertTokenizer

    vocabulary = {token: position for position, token in enumerate(_vocabulary())}
    BertTokenizer(vocab=vocabulary, model_max_length=64).save_pretrained(folder)


def _save_cross_encoder(folder: Path, *, labels: int = 1) -> Path:
    import torch
    from transformers import BertForSequenceClassification

    torch.manual_seed(1)
    BertForSequenceClassification(_config(num_labels=labels)).eval().save_pretrained(folder)
    _save_tokenizer(folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def one_tls_context() -> Iterator[None]:
    """Use one TLS context: each client would read all certificates of the machine in 40 ms."""
    with pytest.MonkeyPatch.context() as patch:
        once = functools.cache(httpcore2.default_ssl_context)
        patch.setattr(httpcore2, "default_ssl_context", once)
        yield


@pytest.fixture(scope="session")
def cross_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _save_cross_encoder(tmp_path_factory.mktemp("cross"))


@pytest.fixture(scope="session")
def classifier_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with three classes, as for natural language inference."""
    return _save_cross_encoder(tmp_path_factory.mktemp("classes"), labels=3)


@pytest.fixture(scope="session")
def bi_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentence-transformers model: transformer, mean pooling."""
    import torch
    from transformers import BertModel

    folder = tmp_path_factory.mktemp("bi")
    torch.manual_seed(2)
    BertModel(_config()).eval().save_pretrained(folder)
    _save_tokenizer(folder)
    kinds = "sentence_transformers.models"
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": f"{kinds}.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": f"{kinds}.Pooling"},
    ]
    pooling = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 32}))
    return folder


@pytest.fixture(scope="session")
def _running_server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture
def server(_running_server: Server) -> Server:
    """Services on this machine, without any previous requests."""
    _running_server.forget()
    return _running_server


@pytest.fixture
def hands() -> HeldClock:
    return HeldClock()
