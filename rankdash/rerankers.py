"""What a plugin imports: the types that a kind of reranker is made of."""

from rankdash.core.rerankers import (
    Call,
    Capabilities,
    Corpus,
    Request,
    Reranker,
    RerankerKind,
    Scored,
    SettingSpec,
)

__all__ = [
    "Call",
    "Capabilities",
    "Corpus",
    "Request",
    "Reranker",
    "RerankerKind",
    "Scored",
    "SettingSpec",
]
