"""Recognition of columns by names in English and Chinese, and guesses for unknown names."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from rankdash.core.base.errors import DataError, Finding, FormatError, Phrase
from rankdash.core.base.i18n import plain as number
from rankdash.core.data.arrays import numbers_of, objects
from rankdash.core.readers.parse.limits import counted, named_lines
from rankdash.core.readers.parse.table import FIELDS, Columns, Table
from rankdash.core.readers.parse.values import blank, labels, looks_like_ids, numbers, words_in

_NAMES: dict[str, str] = {
    "query_id": "queryid qid topic topicid topicno topicnumber questionid searchid queryno qnum "
    "querynumber 查询id 查询编号 查询号 问题id 问题编号 检索词id 搜索词id 题目id",
    "query": "query querytext question questiontext search searchquery searchterm searchterms "
    "searchtext querystring keyword keywords utterance userquery userinput q "
    "查询 查询文本 查询内容 查询词 查询语句 "
    "问题 问题文本 问句 提问 检索词 检索式 搜索词 关键词 搜索 用户问题 用户查询",
    "doc_id": "docid documentid did pid passageid corpusid productid itemid docno docnumber "
    "chunkid answerid articleid paragraphid "
    "文档id 文档编号 文档号 段落id 段落编号 商品id 商品编号 文章id 文章编号 "
    "答案id 答案编号 候选id 文本id 片段id",
    "document": "document doc doctext documenttext passage passagetext content contents body "
    "answer answertext chunk chunktext pagecontent paragraph context snippet candidate "
    "candidatetext product "
    "producttext productdescription article articletext "
    "文档 文档内容 文档文本 段落 段落内容 段落文本 答案 回答 内容 "
    "文本 文章 文章内容 正文 候选 候选文档 候选文本 候选答案 商品 商品描述 片段 上下文",
    "title": "title doctitle documenttitle producttitle productname passagetitle headline "
    "标题 文档标题 题目 商品标题 商品名称",
    "label": "label labels relevance rel relevancelabel relevancegrade relevancescore "
    "relevancejudgment relevancejudgement grade rating judgment judgement qrel gain truescore "
    "expectscore "
    "truelabel truerelevance ytrue gold goldlabel esci esclilabel escilabel annotation isrelevant "
    "relevant "
    "标签 标注 标记 相关性 相关度 相关 相关等级 相关程度 相关性标签 相关性等级 "
    "相关性评分 相关性得分 相关性分数 相关度评分 相关度得分 "
    "是否相关 等级 评级 评分 打分 分级 人工标注",
    "score": "firststagescore initialscore retrievalscore retrieverscore bm25 bm25score "
    "searchscore modelscore similarity similarityscore cosine distancescore "
    "初始分数 初始得分 检索分数 检索得分 召回分数 召回得分 相似度 首轮分数 初排分数",
    "rank": "rank ranking position pos firststagerank initialrank retrievalrank bm25rank "
    "排名 名次 位次 排序 初始排名 检索排名 召回排名 初排排名",
    "reranked": "predscore predscores prediction predictions predictedscore rerankscore "
    "rerankerscore rerankedscore crossencoderscore yscore "
    "预测分数 预测得分 重排分数 重排得分 精排分数",
}
_FIELD_OF = {name: field for field, names in _NAMES.items() for name in names.split()}
# Other names for columns of a system's scores: pred_scores_bge, minilm_rerank_score.
_BRACKETS = re.compile(r"[(（\[【](?!(?:list|query)\))[^()（）\[\]【】]*+[)）\]】]\s*+$")
_OF_A_SYSTEM = re.compile(
    r"(pred|predicted|rerank|reranked|reranker|crossencoder)scores?|(预测|重排|精排)(分数|得分)"
)
# The prefix of the name of a system, if the format identifies a column as its scores.
SYSTEM = "pred_scores "
PLAIN_SCORE = ("score", "scores", "分数", "得分")
PLAIN_ID = ("id", "编号")
PLAIN_TEXT = ("text", "texts")
# The most distinct grades of a scale; scores of a search system hardly ever repeat.
MOST_GRADES = 12
# Higher whole numbers are ids.
HIGHEST_GRADE = 100
_HINTS = {
    field: re.compile(pattern)
    for field, pattern in {
        "query_id": "^(?=.*?(?:quer|topic|question|search|查询|问题|检索)).*(?:id|no|num|编号|号)$",
        "doc_id": "^(?=.*?(?:doc|pass|item|prod|corpus|chunk|文档|段落|商品))"
        ".*(?:id|no|num|编号|号)$",
        "query": "quer|question|search|keyword|查询|问题|检索|搜索|提问",
        "title": "title|标题",
        "document": "doc|pass|content|answer|text|body|文档|段落|答案|内容|文本|正文",
        "label": "label|relev|grade|judg|rating|标签|标注|相关|等级",
        "rank": "rank|position|排名|名次",
        "score": "score|sim|分数|得分|相似",
    }.items()
}


class MappingNeeded(FormatError):  # noqa: N818 - a question that the user answers
    """Unrecognised columns of a file, which the user has to map to fields.

    file:    its name.
    columns: the names in the file, in order.
    labels:  the columns whose cells can be labels.
    guess:   field (of `FIELDS`) → column, or None if no column fits.
    preview: the first rows, all text.
    missing: the fields that are required to read the file, or, if `optional`, that may be added.
    """

    def __init__(
        self, file: str, frame: pd.DataFrame, missing: str, *, optional: bool = False
    ) -> None:
        self.columns = list(frame.columns)
        self.labels = [name for name in self.columns if can_be_labels(frame[name])]
        self.guess = guess(frame)
        self.preview = frame.head(5).astype("str")
        self.missing = missing
        super().__init__(
            "One of these columns may be the {missing} of the first stage: {columns}."
            if optional
            else "No column is recognised as {missing}. The columns are: {columns}. Guessed: "
            "{guessed}.",
            remedy="Choose the column, or choose none to use the order of the rows."
            if optional
            else "Map the columns (--columns query=… on the command line), or rename them: query "
            "(or query_id), document (or doc_id), label (label_1, label_2 … for several "
            "annotators), and score or rank. Load a file that contains only queries or only "
            "documents together with the other files of its data set.",
            file=file,
            missing=missing,
            columns=", ".join(self.columns[:20]),
            guessed=named_columns(self.guess) or "–",
        )


class NumbersNeeded(FormatError):  # noqa: N818 - a question that the user answers
    """Numbers that could be the grades of documents or their ids.

    key: the key of their lists. numbers, documents: an example of both.
    """

    def __init__(self, file: str, key: str, numbers: str, documents: str) -> None:
        self.key, self.numbers, self.documents = key, numbers, documents
        super().__init__(
            "The numbers under {key} ({numbers}) could be the grades of the documents "
            "({documents}), or the ids of the relevant ones.",
            remedy="Choose --columns label={key} if they are grades, or --columns doc_id={key} if "
            "they are ids.",
            file=file,
            key=key,
            numbers=numbers,
            documents=documents,
        )


# An example in the error about JSON with an unknown structure.
_SEEN_CHARS = 80
_SHAPE = '{"query": "…", "retrieved": ["d3", "d1"], "relevant": {"d1": 2}}'


def unknown_shape(file: str, seen: str, line: int | None = None) -> FormatError:
    """Return the error for valid JSON without recognised queries and documents.

    seen: the keys of its entries, or the beginning of an entry.
    """
    return FormatError(
        "The file is valid JSON with an unknown structure. It contains: {seen}. Nothing was read "
        "from the file.",
        remedy="Write one entry per query, for example {example}, or rows as in a table.",
        file=file,
        line=line,
        seen=seen,
        example=_SHAPE,
    )


_KINDS = {
    dict: Phrase("an object"),
    list: Phrase("a list"),
    int: Phrase("a whole number"),
    str: Phrase("a text or a number"),
}


def unexpected(path: str, kind: Any, seen: object, file: str, line: int) -> FormatError:
    """Return the error for a value of JSON that is not of the expected kind. path: its keys."""
    return FormatError(
        "The value of {path} must be {kind}, not {seen}.",
        remedy="Write the value as the tool does. Nothing was read from the file.",
        file=file,
        line=line,
        path=path,
        kind=_KINDS.get(kind, Phrase("a finite number")),
        seen=json.dumps(seen, ensure_ascii=False)[:_SEEN_CHARS],
    )


def lacking(path: str, file: str, line: int) -> FormatError:
    """Return the error for a missing value of JSON. path: its keys."""
    return FormatError(
        "The value of {path} is missing.",
        remedy="Write the value as the tool does. Nothing was read from the file.",
        file=file,
        line=line,
        path=path,
    )


@lru_cache(maxsize=10_000)
def plain(name: str) -> str:
    """Normalise a column's name for comparison: `Query-ID ` and `query_id` become `queryid`."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(char for char in folded if char.isalnum())


def recognise(columns: Sequence[str]) -> dict[str, str]:
    """Return field → column for known names; the first of several columns is used."""
    fields: dict[str, str] = {}
    for column in columns:
        field = _field(column)
        if field and field not in fields:
            fields[field] = column
    return fields


def _field(column: str) -> str | None:
    name = plain(column)
    if name not in _FIELD_OF and (bare := _BRACKETS.sub("", column)):
        # A scale or a unit in brackets: 相关性评分（0-3）, relevance (0 to 3).
        name = plain(bare)
    return _FIELD_OF.get(name, "reranked" if _OF_A_SYSTEM.search(name) else None)


def systems_in(columns: Sequence[str]) -> list[str]:
    """Return the columns that contain the scores of a reranker, by their names."""
    return [column for column in columns if _field(column) == "reranked"]


def holds_scores(column: str, cells: pd.Series[str]) -> bool:
    """Return whether a column with an unknown name contains scores: numbers with fractions, or
    numbers under a name that ends in a word for scores."""
    parsed = numbers(cells.to_numpy(dtype=object))
    called = plain(column).endswith(PLAIN_SCORE)
    return _numeric(cells) and (called or bool((parsed % 1 > 0).any()))


def names_a_value(column: str) -> bool:
    """Return whether the name identifies a column as a label, a score or a rank."""
    name = plain(column)
    return name in PLAIN_SCORE or _field(column) in ("label", "score", "rank", "reranked")


def known(columns: Sequence[str]) -> int:
    """Return the number of columns with known names, including ambiguous names."""
    ambiguous = (*PLAIN_SCORE, *PLAIN_ID, *PLAIN_TEXT)
    return sum(plain(name) in _FIELD_OF or plain(name) in ambiguous for name in columns)


def fields_of(frame: pd.DataFrame) -> dict[str, str]:
    """Return field → column, for columns with known names; values resolve ambiguous names.

    `score` without a label is a label in qrels (`query-id corpus-id score`) and if it has few
    distinct whole numbers, else a first-stage score. `id` and `text` belong to queries or
    documents, depending on the other columns. A query column that contains only ids is a query_id,
    and a document column a doc_id.
    """
    columns = list(frame.columns)
    fields = recognise(columns)
    by_plain_name = {plain(column): column for column in reversed(columns)}
    _settle_score(fields, frame, by_plain_name)
    _settle_id_and_text(fields, by_plain_name)
    _settle_query_id(fields, frame, by_plain_name)
    for text, identity in (("query", "query_id"), ("document", "doc_id")):
        both = {"query", "query_id"} & set(fields) and {"document", "doc_id"} & set(fields)
        if (
            both
            and text in fields
            and identity not in fields
            and looks_like_ids(frame[fields[text]])
        ):
            fields[identity] = fields.pop(text)
    if "title" in fields and not {"document", "doc_id"} & set(fields):
        # The title of a TREC topic is the query; the title of a product is its only text.
        topic = "query_id" in fields and "query" not in fields
        fields["query" if topic else "document"] = fields.pop("title")
    return fields


def doubts(fields: Mapping[str, str], frame: pd.DataFrame) -> list[tuple[str, str]]:
    """Return (column, field) for columns that were recognised by their values."""
    named = recognise(list(frame.columns))
    doubtful = [
        (column, field)
        for text, field in (("query", "query_id"), ("document", "doc_id"))
        if (column := named.get(text)) and fields.get(field) == column
    ]
    # `query-id corpus-id score` is BEIR's format of labels, so there is no doubt.
    beir = {"queryid", "corpusid"} <= {plain(column) for column in frame.columns}
    scores = [
        (fields[field], field)
        for field in ("label", "score")
        if field in fields and plain(fields[field]) in PLAIN_SCORE and not beir
    ]
    return doubtful + scores


def _settle_score(
    fields: dict[str, str], frame: pd.DataFrame, by_plain_name: Mapping[str, str]
) -> None:
    column = next((by_plain_name[name] for name in PLAIN_SCORE if name in by_plain_name), None)
    if column is None:
        return
    if "label" in fields or "rank" in fields:
        fields.setdefault("score", column)
    elif "corpusid" in by_plain_name or "score" in fields or _few_whole_steps(frame[column]):
        fields["label"] = column
    else:
        fields["score"] = column


def _few_whole_steps(values: pd.Series[str]) -> bool:
    parsed = numbers(values.to_numpy(dtype=object))
    steps = pd.unique(parsed[parsed == parsed])
    return len(steps) <= MOST_GRADES and all(float(step).is_integer() for step in steps)


def _settle_id_and_text(fields: dict[str, str], by_plain_name: Mapping[str, str]) -> None:
    identity = next((by_plain_name[name] for name in PLAIN_ID if name in by_plain_name), None)
    text = next((by_plain_name[name] for name in PLAIN_TEXT if name in by_plain_name), None)
    queries = bool({"query", "query_id"} & set(fields))
    documents = bool({"document", "doc_id", "title"} & set(fields))
    if text and queries and "document" not in fields and (documents or "query" in fields):
        fields["document"] = text
    elif text and queries and "query" not in fields:
        fields["query"] = text
    elif text and documents and "document" not in fields:
        fields["document"] = text
    if identity and queries and not documents and not text:
        fields.setdefault("query_id", identity)
    elif identity and documents and not queries:
        fields.setdefault("doc_id", identity)


def _settle_query_id(
    fields: dict[str, str], frame: pd.DataFrame, by_plain_name: Mapping[str, str]
) -> None:
    """Use `id` as the query's id if several rows share an id, and equal ids always have the same
    query; an id that is unique per row identifies the row."""
    identity = next((by_plain_name[name] for name in PLAIN_ID if name in by_plain_name), None)
    if identity is None or "query" not in fields or {"query_id", "doc_id"} & set(fields):
        return
    ids, queries = frame[identity], frame[fields["query"]]
    shared = ids.notna().all() and ids.duplicated().any()
    if shared and (queries.groupby(ids).nunique() == 1).all():
        fields["query_id"] = identity


def is_id(column: str) -> bool:
    """Return whether the name of a column is just "id" (or Chinese for it): it then numbers the
    rows and does not group queries."""
    return plain(column) in PLAIN_ID


def id_and_text(frame: pd.DataFrame) -> tuple[str, str] | None:
    """Return the columns (id, text) of a table of either queries or documents, or None if it has no
    such names."""
    names = {plain(column): column for column in reversed(list(frame.columns))}
    identity = next((names[name] for name in PLAIN_ID if name in names), None)
    text = next((names[name] for name in PLAIN_TEXT if name in names), None)
    return (identity, text) if identity and text else None


def guess(frame: pd.DataFrame) -> dict[str, str | None]:
    """Return the most likely column for every field, by name, part of the name, or values."""
    fields = fields_of(frame)
    free = [column for column in frame.columns if column not in fields.values()]
    for field, hint in _HINTS.items():
        column = next((name for name in free if hint.search(plain(name))), None)
        if column and field == "label" and not can_be_labels(frame[column]):
            continue
        if column and field not in fields:
            fields[field] = column
            free.remove(column)
    if "label" in fields and not can_be_labels(frame[fields["label"]]):
        free.append(fields.pop("label"))
    numeric = [name for name in free if _numeric(frame[name])]
    if "label" not in fields:
        grades = next((name for name in numeric if _few_whole_steps(frame[name])), None)
        if grades:
            fields["label"] = grades
    wordy = [name for name in free if name not in numeric and name != fields.get("label")]
    wordy.sort(key=lambda name: float(frame[name].head(200).astype("str").str.len().mean()))
    for field, identity in (("document", "doc_id"), ("query", "query_id")):
        if wordy and field not in fields and identity not in fields:
            fields[field] = wordy.pop()
    return {field: fields.get(field) for field in FIELDS}


def can_be_labels(cells: pd.Series[str]) -> bool:
    """Return whether most non-empty cells are numbers or words of a scale, or few words that
    repeat."""
    texts = cells.to_numpy(dtype=object)
    filled = int((~blank(texts)).sum())
    read = int(np.isfinite(labels(texts).values).sum())
    return 2 * read > filled or bool(words_in(texts))


def _numeric(values: pd.Series[str]) -> bool:
    parsed = numbers(values.head(200).to_numpy(dtype=object))
    return len(parsed) > 0 and bool((parsed == parsed).mean() > 0.9)


def named_columns(fields: Mapping[str, str | None]) -> str:
    """Return fields and their columns in one line."""
    pairs = ((field, fields.get(field) or "") for field in FIELDS)
    return ", ".join(
        f"{field} = {column.removeprefix(SYSTEM)}" for field, column in pairs if column
    )


def mapped(mapping: Mapping[str, str], frame: pd.DataFrame, file: str) -> dict[str, str]:
    """Validate the user's mapping. Raises DataError for an unknown field or column."""
    for field, column in mapping.items():
        if field not in FIELDS:
            raise DataError(
                "Unknown field {field!r} in the mapping of columns.",
                remedy="The fields are: {fields}.",
                file=file,
                field=field,
                fields=", ".join(FIELDS),
            )
        if column not in frame.columns:
            raise DataError(
                "Unknown column {column!r} in the mapping to {field}.",
                remedy="The columns are: {columns}.",
                file=file,
                column=column,
                field=field,
                columns=", ".join(frame.columns),
            )
    return dict(mapping)


# Checks for columns whose names or cells contradict their use: an unused column that looks like
# labels, a label column with a name such as "1 is best", and a document column with so few values
# that they are probably kinds of documents.

# At least this many rows per document, in a file with at least `_ROWS` rows, indicate kinds of
# documents.
_ROWS_PER_DOCUMENT = 50
_ROWS = 1000
_ONE_IS_BEST = re.compile(r"(^|\D)1(is|being|为|是|表示|代表|isthe)*(best|highest|most|perfect|最)")


def suspicious(table: Table, fields: Mapping[str, str]) -> list[Finding]:
    """Return findings about columns that are probably misread (see the comment above)."""
    if not table.names:
        return []
    findings = [_unused(table, fields), _reversed(table, fields), _few_documents(table, fields)]
    return [each for each in findings if each is not None]


def trimmed_ids(table: Table, columns: Iterable[str]) -> Table:
    """Remove spaces around the ids in the columns, with a warning for each affected column."""
    # Formats with fixed fields are written by programs, so their ids are unchanged.
    if table.fields is not None:
        return table
    for column in columns:
        cells = table.arrow(column)
        trimmed = pc.utf8_trim_whitespace(cells)
        length = numbers_of(pc.binary_length(trimmed), missing=0)
        rows = np.flatnonzero(
            (length > 0) & (numbers_of(pc.binary_length(cells), missing=0) > length)
        )
        if not len(rows):
            continue
        if isinstance(table.cells, Columns):
            changed: Any = Columns({**table.cells, column: trimmed})
        else:
            changed = table.cells.assign(**{column: objects(trimmed)})
        lines = table.lines[rows].tolist()
        finding = counted(
            "warning",
            "blanks_around_ids",
            "Ids in the column {column} with spaces around them, which were removed: {count}. "
            "Lines: {lines}.",
            len(rows),
            "Remove the spaces from the file if other programs read it.",
            table.file,
            lines[0],
            [repr(cells[int(row)].as_py()) for row in rows[:5]],
            column=column,
            lines=named_lines(lines),
        )
        table = replace(table, cells=changed, findings=(*table.findings, finding))
    return table


def several_labels(table: Table, fields: Mapping[str, str]) -> list[Finding]:
    """Return a warning if an unused column of labels differs from the used one."""
    used = fields.get("label")
    names = [column for column in table.columns if recognise([column]).keys() == {"label"}]
    if used is None or used not in names or len(names) < 2:
        return []
    used_labels = labels(table.arrow(used)).values
    others = {column: labels(table.arrow(column)).values for column in names if column != used}
    differ = [np.isfinite(values) & (values != used_labels) for values in others.values()]
    rows = np.flatnonzero(np.any(differ, axis=0))
    if not len(rows):
        return []
    lines = table.lines[rows].tolist()
    return [
        counted(
            "warning",
            "several_labels",
            "The labels are from the column {column}. Rows with a different label in {others}: "
            "{count}. Lines: {lines}.",
            len(rows),
            "Choose the column on the page Data, or with --columns label=…. If each column "
            "contains the labels of one annotator, name them label_1, label_2 ….",
            table.file,
            lines[0],
            [table.row_text(int(row)) for row in rows[:5]],
            column=used,
            others=", ".join(others),
            lines=named_lines(lines),
        )
    ]


def _unused(table: Table, fields: Mapping[str, str]) -> Finding | None:
    if table.fields is not None or "label" in fields:
        return None
    for column in table.columns:
        named = column not in fields.values() and _HINTS["label"].search(plain(column))
        if named and can_be_labels(table.frame[column]):
            return Finding(
                "warning",
                "unused_labels",
                "The column {column} looks like relevance labels and is not used; the file has no "
                "other label column.",
                {"column": column},
                "Load the file again and choose it as the label (--columns label=…).",
                table.file,
            )
    return None


def _reversed(table: Table, fields: Mapping[str, str]) -> Finding | None:
    column = fields.get("label")
    if column is None or not _ONE_IS_BEST.search(plain(column)):
        return None
    values = labels(table.arrow(column), None).values
    values = values[np.isfinite(values) & (values >= 0)]
    if not len(values):
        return None
    return Finding(
        "warning",
        "label_direction",
        "The name of the label column, {column}, indicates that the lowest grade is best: {best}.",
        {"column": column, "best": number(float(values.min()))},
        "A higher label must be better. Reverse the labels: on the page Data, or with "
        "--reverse-labels N, where N is the grade that means not relevant.",
        table.file,
    )


def _few_documents(table: Table, fields: Mapping[str, str]) -> Finding | None:
    column = fields.get("document", fields.get("title"))
    if column is None or "doc_id" in fields or len(table) < _ROWS:
        return None
    documents = int(table.frame[column].nunique())
    if documents * _ROWS_PER_DOCUMENT > len(table):
        return None
    return Finding(
        "warning",
        "few_documents",
        "Only {documents:,} different documents in {rows:,} rows: the column {column} may name "
        "kinds of documents, not documents.",
        {"documents": documents, "rows": len(table), "column": column},
        "Choose the column that contains the text of the documents, or add one with their ids.",
        table.file,
    )
