"""Texts use the terms of the field, and none of the phrases that these replaced."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from babel.messages.pofile import read_po

from tests.roles import PACKAGE, is_command

ROOT = Path(__file__).parents[1]
REPLACED = (
    *(r"kept scores", r"combine(d)? (stored )?runs", r"compared with it\b", r"looked at, against"),
    *(r"hangs? on", r"where it pays", r"quality, price(,| and) waiting"),
    *(r"beaten by (none|another)",),
    *(r"take with care", r"put up with", r"most decided", r"longest text in tokens"),
    *(r"document by document", r"list by list", r"pair by pair", r"labels alone", r"against k\b"),
    *(r"^answered within$", r"how far they spread", r"(several|so many) (queries|clients) at once"),
    *(r"under way at once", r"in none of (these|the) times", r"rescued", r"buried", r"^idle$"),
    *(r"distractor", r"\blifted\b", r"ceiling", r"headroom", r"left nothing to win"),
    *(r"worthwhile gain", r"(was|were) asked for", r"smallest change these queries"),
    *(r"\bleft (out|aside)\b", r"nothing relevant$", r"open(ed)? by (its )?name"),
    *(r"found from the names", r"most of them say", r"where labels disagree", r"for good\b"),
    *(r"forget these", r"scored with others", r"other programs ran", r"type exact numbers"),
    *(r"simple roi", r"changes any more", r"(?<!between )\branks 1 and 2", r"in no measured time"),
    *(r"no number that follows", r"its worst there", r"nothing can be compared with it"),
    *(r"where a link names none", r"is from stands under", r"service that charges"),
    *(r"getting ready", r"what was noticed", r"\brules in force", r"randomi[sz]ation"),
    *(r"how long a query takes", r"\breads? are:", r"is not told of"),
)
REPLACED_IN_CHINESE = (
    *("自带目标", "近似平分", "无余地", "赢得", "被救回", "被埋没", "初排排序", "漏召", "检索器"),
    *("已标注@", "judged@", "挑战者", "重抽样", "搜索单位", "每个查询的", "生效的规则"),
    *("谨慎看待", "否：无论价格", "低于要求的", "徽标", "保存的方案", "仅凭偶然达到"),
    *("重排器", "文本对", "载入", "经验数值", "个标注员", "评估", "未得到证明"),
)


def phrases(text: str) -> list[str]:
    """Return the replaced phrases that a text contains, outside its fields."""
    said = re.sub(r"\{[^{}]*\}", "", text)
    return [each for each in REPLACED if re.search(each, said, re.IGNORECASE)]


def spoken() -> Iterator[tuple[str, str]]:
    """Yield (place, text) of the English interface, command line and documentation.

    Code in documents is in backticks or indented, and may contain the names of columns and codes.
    """
    for catalogue in (PACKAGE / "locale").glob("*.po"):
        with catalogue.open("rb") as stream:
            for message in read_po(stream):
                forms = message.id if isinstance(message.id, tuple) else (message.id,)
                yield from ((catalogue.name, form) for form in forms if form)
    for file in filter(is_command, PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and " " in str(node.value):
                yield f"{file.name}:{node.lineno}", str(node.value)
    for file in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", file.read_text(), flags=re.DOTALL)
        yield from ((file.name, paragraph) for paragraph in text.split("\n"))
    for file in (ROOT / "docs").glob("*.ipynb"):
        cells = json.loads(file.read_text())["cells"]
        yield from (
            (file.name, "".join(cell["source"]))
            for cell in cells
            if cell["cell_type"] == "markdown"
        )


def test_no_text_holds_a_phrase_that_a_term_of_the_field_replaced():
    wrong = {(where, text, tuple(found)) for where, text in spoken() if (found := phrases(text))}
    assert wrong == set()


def test_no_chinese_text_holds_a_replaced_word():
    with (PACKAGE / "locale" / "zh.po").open("rb") as stream:
        said = [str(message.string) for message in read_po(stream) if message.id]
    said.append((ROOT / "README.zh-CN.md").read_text())
    assert [(text, word) for text in said for word in REPLACED_IN_CHINESE if word in text] == []
