import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.rerankers.bm25_tokenizer import Tokenizer

ROOT = Path(__file__).parents[2]


def words(text, language="auto"):
    return Tokenizer(language)([text])[0]


def test_chinese_gives_its_characters_words_and_the_words_within_them():
    assert words("配送时间") == ["配", "送", "时", "间", "配送", "时间"]
    found = words("中华人民共和国")
    assert {"中华", "人民", "共和国", "中华人民共和国"} <= set(found)


def test_texts_that_are_cut_differently_still_share_something():
    assert "退货" not in words("退货运费")
    assert {"退", "货"} <= set(words("退货运费")) & set(words("退货需要七天"))


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("auto", "Returning returned RETURNS", ["return"] * 3),
        ("auto", "iPhone手机的charging问题", [
            "iphon", "手", "机", "的", "手机", "charg", "问", "题", "问题",
        ]),
        ("auto", "ＡＢＣ１２３", ["abc123"]),
        ("en", "refunds退货", ["refund", "退", "货"]),
        ("zh", "refunds退货", ["refunds", "退", "货", "退货"]),
        ("none", "refunds退货", ["refunds", "退", "货"]),
        *(("auto", text, []) for text in ("", "   \n", "?!……《》", "\x00\ufeff", "🎁🎁")),
    ],
)  # fmt: skip
def test_words_by_language(language, text, expected):
    assert words(text, language) == expected


@pytest.mark.parametrize(
    ("package", "language", "text"), [("Stemmer", "en", "refunds"), ("jieba", "zh", "退货")]
)
def test_a_language_needs_its_own_package_alone(package, language, text):
    code = f"""
import sys
sys.modules[{package!r}] = None
from rankdash.errors import UnavailableError
from rankdash.rerankers.bm25_tokenizer import Tokenizer
print(Tokenizer("none")([{text!r}]))
try:
    print(Tokenizer({language!r})([{text!r}]))
except UnavailableError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    plain, refused = done.stdout.splitlines()
    assert plain != "[[]]"
    assert package.lower() in refused.lower() and "is not installed" in refused


@given(st.text())
def test_any_text_is_taken_and_no_word_is_empty(text):
    assert all(words(text))


def test_segmentation_is_silent_and_leaves_no_file(tmp_path):
    code = "from rankdash.rerankers.bm25_tokenizer import Tokenizer; print(Tokenizer()(['退货']))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={"TMPDIR": str(tmp_path), "PYTHONIOENCODING": "utf-8"},
    )
    assert done.stdout.strip() == "[['退', '货', '退货']]"
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []
