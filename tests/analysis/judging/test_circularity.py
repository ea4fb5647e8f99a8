from rankdash.core.sampling.rater_agreement import circular, makers_of
from tests.results import results

MODELS = (
    "gpt-4o-mini", "openai/gpt-oss-20b", "o3-mini", "claude-sonnet-4-5",
    "us.anthropic.claude-3-haiku", "Qwen/Qwen3-Reranker-0.6B", "qwen2.5:7b-instruct",
    "Alibaba-NLP/gte-multilingual-reranker-base", "BAAI/bge-reranker-v2-m3",
    "BAAI/bge-reranker-v2-gemma", "rerank-multilingual-v3.0", "command-r-plus",
    "jinaai/jina-reranker-v2-base-multilingual", "voyage-rerank-2",
    "meta-llama/Llama-3.1-8B-Instruct", "llama3.2", "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
    "intfloat/multilingual-e5-large", "mistral-small-latest", "glm-4-flash",
    "cross-encoder/ms-marco-MiniLM-L6-v2", "all-MiniLM-L6-v2", "bm25", "my-own-model",
    "legal-reranker", "metadata boost", "innovation ranker", "",
)  # fmt: skip
SYSTEMS = {
    "First stage": ["bm25"],
    "GPT listwise": ["llm", "gpt-4o-mini"],
    "Other GPT": ["llm", "openai/gpt-4.1"],
    "BGE": ["cross-encoder", "BAAI/bge-reranker-v2-m3"],
}
OURS = {"Ours": ["llm", "http-models/house-judge-7"], "Theirs": ["house-judge-8"]}


def test_makers_are_known_by_their_models_and_a_judge_of_itself_is_noticed(approved):
    cases: dict[str, object] = {f"makers of {model!r}": makers_of(model) for model in MODELS}
    cases |= {
        "the same model and the same maker": circular("openai/GPT-4o-mini", SYSTEMS),
        "another maker": circular("claude-haiku-4-5", SYSTEMS),
        "a model of an unknown maker": circular("house-judge-7", OURS),
        "no name is no name of a system": circular("", {"A": [""], "B": []}),
    }
    approved("analysis/makers", results(cases))
