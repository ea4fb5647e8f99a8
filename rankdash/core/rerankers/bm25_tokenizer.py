"""Words for lexical matching, from text that may mix English and Chinese."""

from __future__ import annotations

import logging
import re
import unicodedata
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal

from rankdash.core.base.errors import UnavailableError

Language = Literal["auto", "en", "zh", "none"]

# Scripts written without blanks between words: Han (with extensions), Hiragana and Katakana.
_UNSPACED = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_UNSPACED += "\U00020000-\U0003fffd"
_UNSPACED_RUN = re.compile(f"([{_UNSPACED}]+)")
_WORD = re.compile(r"\w+")


class Tokenizer:
    """Splits texts into lower-case words, by script within each text.

    Words written with blanks are stemmed as English ("auto", "en") or kept ("zh", "none"). A run
    of Chinese characters gives its single characters and ("auto", "zh") the words that jieba finds
    in search mode: long ones and those within them. The characters keep a short query from
    matching nothing where query and document are cut differently.
    """

    def __init__(self, language: Language = "auto") -> None:
        self._stem = _stemmer() if language in ("auto", "en") else list
        self._segments = language in ("auto", "zh")

    def __call__(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of each text, in order, repeats included."""
        return [self._words(text) for text in texts]

    def _words(self, text: str) -> list[str]:
        runs = _UNSPACED_RUN.split(unicodedata.normalize("NFKC", text).lower())
        words: list[str] = []
        for position, run in enumerate(runs):
            # split() with a group alternates: text between runs, run, text between runs, …
            if position % 2 == 0:
                words.extend(self._stem(_WORD.findall(run)))
            else:
                words.extend(run)
                if self._segments:
                    found = _segmenter().cut_for_search(run)
                    words.extend(word for word in found if len(word) > 1)
        return words


def _stemmer() -> Callable[[list[str]], list[str]]:
    try:
        import Stemmer
    except ImportError as error:
        raise _missing("PyStemmer") from error
    stem: Callable[[list[str]], list[str]] = Stemmer.Stemmer("english").stemWords
    return stem


@cache
def _segmenter() -> Any:
    """jieba with its own dictionary, loaded once a process (about half a second)."""
    with warnings.catch_warnings():
        # jieba 0.42.1, its last release, imports pkg_resources where setuptools still has it, and
        # its regular expressions hold escapes that newer Pythons warn about.
        warnings.filterwarnings("ignore", message=".*pkg_resources.*")
        warnings.filterwarnings("ignore", message="invalid escape sequence")
        try:
            import jieba
        except ImportError as error:
            raise _missing("jieba") from error
    jieba.setLogLevel(logging.WARNING)
    segmenter = jieba.Tokenizer()
    # Its own initialize() keeps the dictionary in a file in the shared temporary folder and trusts
    # whatever it finds there.
    segmenter.FREQ, segmenter.total = segmenter.gen_pfdict(segmenter.get_dict_file())
    segmenter.initialized = True
    return segmenter


def _missing(package: str) -> UnavailableError:
    return UnavailableError(
        "The package {package} is not installed.",
        remedy="Install it: pip install {package}",
        package=package,
    )
