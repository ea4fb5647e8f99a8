"""Judges that judge themselves: a judge that is a compared system, or shares a maker with one.

Such a judge tends to like what its own kind ranks high. Makers are known by the names of their
models, which is a guess: a model of another name, or one that was trained on a maker's output, is
not seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_FAMILIES: Mapping[str, str] = {
    "AI21": "ai21|jamba",
    "Alibaba": "alibaba|dashscope|gte|qwen|qwq|tongyi",
    "Allen AI": "allenai|olmo|tulu",
    "Amazon": "amazon|nova|titan",
    "Anthropic": "anthropic|claude",
    "BAAI": "baai|bge",
    "Baichuan": "baichuan",
    "Baidu": "baidu|ernie",
    "ByteDance": "bytedance|doubao|seed-oss",
    "Cohere": "aya|cohere|command-[ar]|rerank-(?:english|multilingual|v[0-9])",
    "Contextual AI": "contextual|ctxl",
    "DeepSeek": "deepseek",
    "Google": "gecko|gemini|gemma|google|palm|semantic-ranker",
    "IBM": "granite|ibm|watsonx",
    "InternLM": "internlm",
    "Jina AI": "jina|jinaai",
    "LG": "exaone",
    "Meta": "llama|meta|meta-llama",
    "Microsoft": "e5|microsoft|phi",
    "MiniMax": "abab|minimax",
    "Mistral AI": "codestral|magistral|ministral|mistral|mistralai|mixtral|pixtral",
    "Mixedbread": "mixedbread|mxbai",
    "Moonshot AI": "kimi|moonshot|moonshotai",
    "NetEase": "bce|netease-youdao",
    "NVIDIA": "nemotron|nv-embed|nv-rerank|nvidia",
    "OpenAI": "chatgpt|gpt|o1|o3|o4|openai|text-embedding-(?:3|ada)",
    "OpenBMB": "minicpm|openbmb",
    "Snowflake": "arctic|snowflake",
    "Tencent": "hunyuan|tencent",
    "Upstage": "solar|upstage",
    "Voyage AI": "voyage|voyageai",
    "xAI": "grok|xai",
    "Zhipu AI": "chatglm|glm|thudm|zai-org|zhipu|zhipuai",
    "01.AI": "01-ai|yi",
}
"""Maker → how the names of its models begin, or those of a part of them."""

_PATTERNS = {
    maker: re.compile(rf"(?<![a-z0-9])(?:{names})(?![a-z])") for maker, names in _FAMILIES.items()
}


@dataclass(frozen=True)
class Circularity:
    """A system that the judge is (`same`), or whose maker it shares; maker is "" where unknown."""

    system: str
    same: bool
    maker: str


def circular(judge: str, systems: Mapping[str, Sequence[str]]) -> list[Circularity]:
    """Which systems the judge cannot be trusted with.

    judge: its model, such as "gpt-4o-mini". systems: name of each → what it is made of: its models
    and names.
    """
    own, makers = _model(judge), makers_of(judge)
    found = []
    for system, texts in systems.items():
        shared = [maker for maker in makers if any(maker in makers_of(text) for text in texts)]
        same = bool(own) and any(_model(text) == own for text in texts)
        if same or shared:
            found.append(Circularity(system, same, shared[0] if shared else ""))
    return found


def makers_of(model: str) -> tuple[str, ...]:
    """Who made a model, as far as its name tells: none, one, or several where one was made from
    another's, such as a "DeepSeek-R1-Distill-Llama-8B"."""
    text = model.lower()
    return tuple(maker for maker, pattern in _PATTERNS.items() if pattern.search(text))


def _model(text: str) -> str:
    """The name without its owner: "openai/gpt-4o" and "gpt-4o" are one."""
    return text.lower().strip().rsplit("/", 1)[-1]
