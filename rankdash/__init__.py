"""rankdash: does reranking help, for which queries, how surely, how fast, at what price?"""
