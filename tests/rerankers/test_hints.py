"""A name that is not a kind of reranker: the hint for a service, a model or a slip."""

import pytest

from rankdash.errors import SettingError
from rankdash.i18n import error_text, speaking
from rankdash.rerankers import create, get, kinds
from rankdash.rerankers.neural.known_models import known_models
from rankdash.rerankers.remote.apis import DIALECTS


def refused(name: str) -> str:
    with pytest.raises(SettingError) as caught:
        get(name)
    return str(caught.value)


@pytest.mark.parametrize("service", sorted(DIALECTS))
def test_a_service_is_an_endpoint_with_a_dialect(service):
    hint = f"It is a service: use the reranker 'endpoint' with dialect={service}."
    assert refused(service).endswith(hint)
    assert refused(f" {service.upper()}-rerank").endswith(hint)
    assert create("endpoint", {"dialect": service, "key_variable": "none"}).settings["dialect"]


@pytest.mark.parametrize("model", known_models(), ids=lambda each: each.id)
def test_a_known_model_is_a_setting_of_its_kind(model):
    kind = "bi-encoder" if model.encoder else "cross-encoder"
    for name in (model.id, model.id.rpartition("/")[2]):
        assert refused(name).endswith(
            f"It is a model: use the reranker '{kind}' with model={name}."
        )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("someone/my-reranker", "cross-encoder"), ("colbert-ir/colbertv2.0", "late-interaction"),
        ("answerai-colbert-small-v1", "late-interaction"), ("gpt-4.1-mini", "llm-pointwise"),
        ("claude-sonnet", "llm-pointwise"),
    ],
)  # fmt: skip
def test_another_model_is_a_setting_of_the_kind_that_its_name_tells(name, kind):
    assert f"use the reranker '{kind}' with model={name}." in refused(name)


@pytest.mark.parametrize(
    ("name", "near"),
    [("bm26", "bm25"), ("bm52", "bm25"), ("crossencoder", "cross-encoder"), ("cascad", "cascade")],
)
def test_a_slip_is_corrected(name, near):
    assert f"Did you mean {near!r}?" in refused(name)


@pytest.mark.parametrize("name", ["", "zzz", "my reranker", "best"])
def test_a_name_like_no_other_gets_the_list_and_no_guess(name):
    said = refused(name)
    assert "Did you mean" not in said
    assert all(kind.name in said for kind in kinds())


def test_in_chinese():
    with speaking("zh"), pytest.raises(SettingError) as caught:
        get("cohere")
    with speaking("zh"):
        assert "dialect=cohere" in error_text(caught.value)
        assert "service" not in error_text(caught.value)
