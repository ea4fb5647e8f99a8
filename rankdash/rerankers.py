"""Types for plugins that add a reranker."""

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
