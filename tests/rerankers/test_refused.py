"""Errors before a run, with their messages: names of kinds and settings of each."""

import math

import pytest

from rankdash.core.base.errors import SettingError
from rankdash.core.base.i18n import error_text, speaking
from rankdash.core.base.rules import SettingSpec, parse_settings
from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers import create, get, kinds
from rankdash.core.rerankers.catalogue import known_models
from rankdash.core.rerankers.fusion import Fusion, fuse
from rankdash.core.rerankers.kinds.endpoint import DIALECTS
from rankdash.core.rerankers.remote import prompts
from rankdash.features.judge.judge import Judge
from tests.approved import table

LLM = ("llm-pointwise", "llm-listwise", "llm-pairwise")
SPECS = (
    SettingSpec("batch_size", 32, "Batch size", "", within=(1, 512)),
    SettingSpec("scale", 1.0, "Scale", "", within=(0, math.inf)),
    SettingSpec("bytes", 0, "Bytes", "", within=(0, 2**20)),
    SettingSpec("shift", 0, "Shift", ""),
    SettingSpec("dtype", "float32", "Precision", "", choices=("float32", "bfloat16")),
    SettingSpec("model", "small", "Model", "", required=True),
    SettingSpec("fast", False, "Fast", ""),
    SettingSpec("prompt", "", "Prompt", ""),
)
WRONG = [
    {"batchsize": 1},
    *({"batch_size": value} for value in (0, 513, "1.5", True, "many")),
    *({"scale": value} for value in (-1, "nan", "inf")),
    *({"bytes": -1}, {"shift": "x"}, {"dtype": "float23"}, {"model": "  "}, {"fast": "perhaps"}),
]
# Kind → settings. Messages never repeat a key, nor a URL that may contain one.
OF_KINDS = [
    *((kind, wrong) for kind in LLM for wrong in ({"prompt": "Is it relevant?"}, {"model": " "})),
    *(("llm-pointwise", {"extra": text})
      for text in ("seed=7", '{"messages": 1}', '{"stream": 1}', '{"n": 1}')),
    ("llm-pointwise", {"base_url": "ftp://x"}),
    ("llm-listwise", {"window": 5, "stride": 6}),
    *(("cascade", wrong)
      for wrong in ({"first": "cascade"}, {"second": "precomputed"}, {"first_settings": "k9=1"},
                    {"second_settings": "max_length=-1"}, {"top": 0})),
    *(("cascade", {"first_settings": text})
      for text in ("k1", "=5", "k1=1.5\nb", "{k1", '{"k1": [1]}')),
    *(("endpoint", {"key_variable": name})
      for name in ("PATH", "AWS_SECRET_ACCESS_KEY", "sk-very/secret+42", "cohere_api_key")),
    *(("endpoint", {"base_url": url}) for url in ("file:///etc/passwd", "https://x.com/?key=1")),
    # A discontinued service is not offered.
    ("endpoint", {"dialect": "zeroentropy"}),
    ("bm25", {"batch_size": 4}),
]  # fmt: skip
OF_JUDGES = [
    {"prompt": "{query} Grade: N"},
    {"prompt": "{query} {document} {system} Grade: N"},
    {"prompt": "{query} {document} give a number"},
    *({"top": 0}, {"repeats": 16}, {"combine": "mean"}, {"base_url": "ftp://x"}, {"tmplate": "x"}),
]
LIST = Ranking.from_lists([("q", ["a"], [1.0])])
OF_FUSIONS = {
    "Fusion('sum')": lambda: Fusion("sum"),
    **{f"weight {weight}": lambda weight=weight: Fusion(weights=(1, weight))
       for weight in (0, math.nan, math.inf)},
    **{f"k {k}": lambda k=k: Fusion(k=k) for k in (math.inf, -1, -1e-9)},
    "one ranking": lambda: fuse([LIST], Fusion()),
    "two rankings, one weight": lambda: fuse([LIST, LIST], Fusion(weights=(1,))),
}  # fmt: skip


def refused(wrong):
    with pytest.raises(SettingError) as caught:
        wrong()
    return error_text(caught.value)


def test_settings_are_refused_in_words(approved):
    cases = {
        **{str(each): lambda each=each: parse_settings(SPECS, each) for each in WRONG},
        "without settings": lambda: parse_settings((), {"x": 1}),
        **{
            f"{kind} {settings}": lambda kind=kind, settings=settings: create(
                kind, {"model": "m", **settings} if kind in LLM else settings
            )
            for kind, settings in OF_KINDS
        },
        **{f"judge {each}": lambda each=each: Judge(each) for each in OF_JUDGES},
        "a place that does not exist": lambda: prompts.check("{query} {documnt}", ("query",)),
        **OF_FUSIONS,
    }
    approved("rerankers/refused", table((name, refused(wrong)) for name, wrong in cases.items()))


def test_a_service_or_a_known_model_is_a_setting_of_its_kind():
    for service in DIALECTS:
        for name in (service, f" {service.upper()}-rerank"):
            said = refused(lambda name=name: get(name))
            assert said.endswith(f"use the reranker 'endpoint' with dialect={service}.")
        assert create("endpoint", {"dialect": service, "key_variable": "none"}).settings["dialect"]
    for model in [each for each in known_models() if not each.needs]:
        kind = "bi-encoder" if model.encoder else "cross-encoder"
        for name in (model.id, model.id.rpartition("/")[2]):
            said = refused(lambda name=name: get(name))
            assert said.endswith(f"use the reranker '{kind}' with model={name}.")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_name_that_is_no_kind_leads_to_the_kind_that_is_meant(approved, language):
    """Unknown models with the kind in the name; then typing errors, and names unlike any kind."""
    models = "cohere someone/my-reranker colbert-ir/colbertv2.0 answerai-colbert-small-v1"
    other = "gpt-4.1-mini claude-sonnet bm26 bm52 crossencoder cascad zzz best"
    with speaking(language):
        names = ["", "my reranker", *models.split(), *other.split()]
        said = {name: refused(lambda name=name: get(name)) for name in names}
    every = ", ".join(kind.name for kind in kinds())
    lines = [text.replace(every, "<all kinds>") for text in said.values()]
    approved(f"rerankers/unknown_kinds.{language}", "\n".join(lines))
