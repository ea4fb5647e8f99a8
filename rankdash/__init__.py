"""rankdash: does reranking help, for which queries, how surely, how fast, at what price?"""

__version__ = "0.1.0"
