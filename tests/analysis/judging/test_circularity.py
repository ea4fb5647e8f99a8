import pytest

from rankdash.analysis.judging.circularity import Circularity, circular, makers_of


@pytest.mark.parametrize(
    ("model", "makers"),
    [
        ("gpt-4o-mini", ("OpenAI",)),
        ("openai/gpt-oss-20b", ("OpenAI",)),
        ("o3-mini", ("OpenAI",)),
        ("claude-sonnet-4-5", ("Anthropic",)),
        ("us.anthropic.claude-3-haiku", ("Anthropic",)),
        ("Qwen/Qwen3-Reranker-0.6B", ("Alibaba",)),
        ("qwen2.5:7b-instruct", ("Alibaba",)),
        ("Alibaba-NLP/gte-multilingual-reranker-base", ("Alibaba",)),
        ("BAAI/bge-reranker-v2-m3", ("BAAI",)),
        ("BAAI/bge-reranker-v2-gemma", ("BAAI", "Google")),
        ("rerank-multilingual-v3.0", ("Cohere",)),
        ("command-r-plus", ("Cohere",)),
        ("jinaai/jina-reranker-v2-base-multilingual", ("Jina AI",)),
        ("voyage-rerank-2", ("Voyage AI",)),
        ("meta-llama/Llama-3.1-8B-Instruct", ("Meta",)),
        ("llama3.2", ("Meta",)),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", ("DeepSeek", "Meta")),
        ("intfloat/multilingual-e5-large", ("Microsoft",)),
        ("mistral-small-latest", ("Mistral AI",)),
        ("glm-4-flash", ("Zhipu AI",)),
        ("cross-encoder/ms-marco-MiniLM-L6-v2", ()),
        ("all-MiniLM-L6-v2", ()),
        ("bm25", ()),
        ("my-own-model", ()),
        ("legal-reranker", ()),
        ("metadata boost", ()),
        ("innovation ranker", ()),
        ("", ()),
    ],
)
def test_makers_are_known_by_their_models(model: str, makers) -> None:
    assert makers_of(model) == makers


def test_the_same_model_and_the_same_maker() -> None:
    systems = {
        "First stage": ["bm25"],
        "GPT listwise": ["llm", "gpt-4o-mini"],
        "Other GPT": ["llm", "openai/gpt-4.1"],
        "BGE": ["cross-encoder", "BAAI/bge-reranker-v2-m3"],
    }
    assert circular("openai/GPT-4o-mini", systems) == [
        Circularity("GPT listwise", True, "OpenAI"),
        Circularity("Other GPT", False, "OpenAI"),
    ]
    assert circular("claude-haiku-4-5", systems) == []


def test_a_model_of_an_unknown_maker_is_still_itself() -> None:
    systems = {"Ours": ["llm", "http-models/house-judge-7"], "Theirs": ["house-judge-8"]}
    assert circular("house-judge-7", systems) == [Circularity("Ours", True, "")]


def test_no_name_is_no_name_of_a_system() -> None:
    assert circular("", {"A": [""], "B": []}) == []
