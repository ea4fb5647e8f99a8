"""Counts in English, for commands and files that speak no other language."""

from __future__ import annotations


def query_count(n: int) -> str:
    """ "1 query" or "2,000 queries"."""
    return "1 query" if n == 1 else f"{n:,} queries"
