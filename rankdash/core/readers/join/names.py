"""What a data set is called when nobody names it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from rankdash.core.readers.join.parsed_file import ParsedFile
from rankdash.core.readers.parse.source import stem_of

UNNAMED = "My data set"
# Words that say what a file holds, which split it is or how it was ranked, not which data it is.
_GENERIC = """
answer answers baseline bm candidate candidates collection content corpus csv data dataset dev
doc docs document documents eval export file files final first initial json jsonl judgement
judgements judgment judgments label labels list new of output passage passages pred predictions
qrel qrels queries query question questions rank ranked ranking rankings relevance rerank
reranked result results retrieval row rows run runs sample score scores set stage system table
test text texts top topic topics train trec tsv upload val valid validation
查询 文档 段落 标注 标签 数据 问题 语料 初排 首轮 重排 测试 训练 验证 结果 排序
"""
_GENERIC_WORDS = frozenset(_GENERIC.split())
_WORD = re.compile(r"[^\W\d_]+")


def data_set_name(parts: Sequence[ParsedFile]) -> str:
    """The folder or archive all files came with; else the folder that all names begin with; else
    a file's name that is more than a generic word, of labels before texts; else the folder or
    archive that texts came with. The file of a ranking is called after the system that made it, and
    gives no name.

    A single file gives its name in any case; `UNNAMED` is what is left.
    """
    origins = {part.origin for part in parts}
    origin = origins.pop()
    if origin and not origins:
        return _without_ending(origin)
    if len(parts) == 1:
        return stem_of(parts[0].file)
    folders = {PurePosixPath(part.file).parts[0] for part in parts}
    common = folders if len(folders) == 1 else ()
    labels = [part for part in parts if len(part.labels)]
    texts = [part for part in parts if part.queries is not None or part.documents is not None]
    came_with = [_without_ending(part.origin) for part in texts if part.origin]
    names = (*common, *(stem_of(part.file) for part in (*labels, *texts)), *came_with)
    return next((name for name in names if not _is_generic(name)), UNNAMED)


def _without_ending(origin: str) -> str:
    """The name of an archive without its ending; that of a folder as it is, for a dot in it ends
    nothing."""
    return stem_of(origin) if origin.lower().endswith((".zip", ".gz", ".xlsx")) else origin


def _is_generic(name: str) -> bool:
    """Whether every word of it is generic or a number."""
    return all(word.casefold() in _GENERIC_WORDS for word in _WORD.findall(name))
