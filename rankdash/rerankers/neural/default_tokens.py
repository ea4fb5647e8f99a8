"""How long texts are for a model that nobody has run yet: counted by the packaged tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from rankdash.rerankers.neural import model_files
from rankdash.rerankers.neural.tokenizer import RawTokenizer

_TOKENIZER_FILE = "tokenizer.json"


@cache
def _tokenizer() -> RawTokenizer:
    folder = model_files.locate(model_files.PACKAGED, "sentence-transformers")
    return RawTokenizer.from_file(folder / _TOKENIZER_FILE)


def default_tokens(texts: Sequence[str]) -> list[int]:
    """How many tokens the packaged model makes of each text, uncut, without special tokens.

    Other models make others of the same text, so what is worked out from it is an estimate. Loads
    no model. Raises UnavailableError where the package is not installed.
    """
    return [len(ids) for ids in _tokenizer().plain(texts)]
