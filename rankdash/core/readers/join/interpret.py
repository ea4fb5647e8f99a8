"""Classification of tables as rows, labels, rankings, queries or documents by their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from rankdash.core.base.errors import DataError, Finding, FormatError, Phrase, refused
from rankdash.core.readers.join.conflicts import SPLITS
from rankdash.core.readers.join.parsed_file import ParsedFile
from rankdash.core.readers.parse.annotators import Together, WordsNeeded, ask_for_words, joined
from rankdash.core.readers.parse.columns import (
    SYSTEM,
    MappingNeeded,
    NumbersNeeded,
    doubts,
    fields_of,
    guess,
    holds_scores,
    id_and_text,
    known,
    mapped,
    named_columns,
    recognise,
    several_labels,
    trimmed_ids,
    unknown_shape,
)
from rankdash.core.readers.parse.limits import ReadLimits, reading
from rankdash.core.readers.parse.rows import documents_part, part_of, queries_part, settle
from rankdash.core.readers.parse.source import Source, stem_of
from rankdash.core.readers.parse.table import Table
from rankdash.core.readers.parse.values import looks_like_ids, numbers

_VALUES = frozenset({"label", "score", "rank", "reranked"})

Words = Mapping[str, float | None]


class FileChoices(TypedDict, total=False):
    """Options for reading each file, documented in `readers.read`."""

    mapping: Mapping[str, Mapping[str, str]] | None
    columns: Mapping[str, str] | None
    limits: ReadLimits | None
    words: Mapping[str, Words] | None
    annotators: Together
    ask: bool


def interpret(
    tables: Sequence[tuple[Table, Source]],
    choices: FileChoices,
    *,
    beside: Sequence[ParsedFile] = (),
    errors: Sequence[DataError] = (),
) -> list[ParsedFile]:
    """Classify each table and return one part per table, in their order.

    beside: the parts of the data set that the tables rank. errors: errors of already refused files,
    raised together with new errors.

    Raises MappingNeeded if columns are not recognised, WordsNeeded if labels are words and
    `ask` is set, FormatError for a table without rows.
    """
    mapping, words = choices.get("mapping") or {}, choices.get("words") or {}
    columns = choices.get("columns")
    unknown = sorted((set(mapping) | set(words)) - {table.file for table, _ in tables})
    if unknown:
        raise FormatError(
            "The mapping is for {file_name!r}, which is not among the files.",
            remedy="The files are: {files}.",
            file_name=unknown[0],
            files=", ".join(table.file for table, _ in tables),
        )
    tables, mapping, columns, question = _decided(tables, mapping, columns)
    if columns:
        mapping = {**_changed(tables, columns, ranking=bool(beside)), **mapping}
    labelled = {table.file for table, _ in tables if _surely_labels(table, mapping.get(table.file))}
    has_labels = any(len(part.labels) for part in beside)
    parts: list[ParsedFile] = []
    unsettled: list[tuple[Table, Source]] = []
    problems = list(errors)
    for table, source in tables:
        file_mapping, graded = mapping.get(table.file), words.get(table.file)
        try:
            with reading(table.file):
                if choices.get("ask") and table.file not in words:
                    _ask(table, file_mapping)
                part = _part(
                    joined(table, choices.get("annotators", "majority"), graded),
                    source,
                    file_mapping,
                    graded,
                    alone=len(tables) == 1 and not beside,
                    beside_labels=has_labels or bool(labelled - {table.file}),
                )
        except (MappingNeeded, WordsNeeded) as needed:
            question = question or needed
            continue
        except DataError as problem:
            problems.append(problem)
            continue
        if part is None:
            unsettled.append((table, source))
        else:
            parts.append(part)
    # Errors have priority, because an answer is useless if other files cannot be read.
    if problems:
        raise refused(problems)
    if question is not None:
        raise question
    parts.extend(settle(unsettled, [*beside, *parts]))
    if not beside:
        _ask_for_labels(tables, parts, mapping)
    position = {table.file: index for index, (table, _) in enumerate(tables)}
    return [
        replace(part, columns=_columns_of(tables[position[part.file]][0]))
        for part in sorted(parts, key=lambda part: position[part.file])
    ]


Question = NumbersNeeded | MappingNeeded | WordsNeeded
_Mapping = Mapping[str, Mapping[str, str]]


def _decided(
    tables: Sequence[tuple[Table, Source]], mapping: _Mapping, columns: Mapping[str, str] | None
) -> tuple[list[tuple[Table, Source]], _Mapping, Mapping[str, str] | None, Question | None]:
    """Choose the table of grades or of ids, as mapped by the user, for files with numbers that
    could be both. Return the tables, the other mappings, and the first question without an answer.
    """
    decided: list[tuple[Table, Source]] = []
    question: Question | None = None
    rest = dict(mapping)
    keys = {table.doubt for table, _ in tables if table.doubt}
    for table, source in tables:
        chosen = {**(columns or {}), **mapping.get(table.file, {})}
        field = next((name for name in _NUMBERS if chosen.get(name) == table.doubt), None)
        if table.doubt and field is None:
            question = question or _numbers_question(table)
        elif table.doubt and table.ids is not None:
            read = table.ids if field == "doc_id" else table
            note = Finding(
                "note",
                "columns_chosen",
                "Columns, as chosen: {columns}.",
                {"columns": f"{field} = {table.doubt}"},
                file=table.file,
            )
            table = replace(read, doubt=table.doubt, findings=(*table.findings, note))
            others = _without(mapping.get(table.file, {}), table.doubt)
            rest.pop(table.file, None)
            rest |= {table.file: others} if others else {}
        decided.append((table, source))
    for key in keys:
        columns = _without(columns or {}, key)
    return decided, rest, columns, question


# What numbers can be, by the field that the user maps their key to.
_NUMBERS = ("label", "doc_id")


def _without(columns: Mapping[str, str], key: str) -> dict[str, str]:
    return {
        field: column
        for field, column in columns.items()
        if not (field in _NUMBERS and column == key)
    }


def _numbers_question(table: Table) -> NumbersNeeded:
    """Return the question with the first query as an example. Its rows list the documents."""
    frame = table.frame
    ids = frame["doc_id" if "doc_id" in frame else "document"]
    queries = frame["query_id" if "query_id" in frame else "query"]
    first = (queries == queries.iloc[0]) & frame["label"].notna()
    examples = (", ".join(column[first].head(5)) for column in (frame["label"], ids))
    return NumbersNeeded(table.file, table.doubt, *examples)


def _columns_of(table: Table) -> tuple[str, ...]:
    return (*table.columns, *filter(None, [table.doubt]))


def refuse_lacking(columns: Mapping[str, str] | None, parts: Sequence[ParsedFile]) -> None:
    """Raise DataError if no file has a column of the user's mapping."""
    every = dict.fromkeys(name for part in parts for name in part.columns)
    missing = {column for column in (columns or {}).values() if column} - every.keys()
    if missing:
        raise DataError(
            "No file has these columns: {wanted}.",
            remedy="The columns are: {columns}.",
            wanted=", ".join(sorted(missing)),
            columns=", ".join(every),
        )


def _changed(
    tables: Sequence[tuple[Table, Source]], columns: Mapping[str, str], *, ranking: bool
) -> dict[str, dict[str, str]]:
    """Return file → field → column: the guessed columns, overridden by the user's. Only for files
    with all of the user's columns, or else for files with some of them. ranking: the files are
    rankings of data with labels, so that a column that looks like a label is a score."""
    requested = {column for column in columns.values() if column}
    having = [table for table, _ in tables if requested <= set(table.columns)]
    some = [table for table, _ in tables if requested & set(table.columns)]
    return {table.file: _over_guess(table, columns, ranking=ranking) for table in having or some}


def _over_guess(table: Table, chosen: Mapping[str, str], *, ranking: bool) -> dict[str, str]:
    columns = {field: column for field, column in chosen.items() if column in {"", *table.columns}}
    guessed = dict(guess(table.frame) if table.fields is None else table.fields)
    if ranking:
        label = guessed.pop("label", None)
        if not any({**guessed, **columns}.get(field) for field in _VALUES):
            guessed["score"] = label
    remaining = {
        field: column
        for field, column in guessed.items()
        if column and column not in columns.values()
    }
    return {field: column for field, column in {**remaining, **columns}.items() if column}


def _ask(table: Table, mapping: Mapping[str, str] | None) -> None:
    """Raise MappingNeeded or WordsNeeded for optional questions about the table."""
    if mapping is None and table.wants:
        raise MappingNeeded(table.file, table.frame, ", ".join(table.wants), optional=True)
    ask_for_words(table, _label_of(table, mapping))


def _ask_for_labels(
    tables: Sequence[tuple[Table, Source]],
    parts: Sequence[ParsedFile],
    mapping: Mapping[str, Mapping[str, str]],
) -> None:
    """Raise MappingNeeded if no file has labels, but the columns of one suggest that it should: its
    rows are pairs without a value, or have a value but no query or no document."""
    if any(len(part.labels) for part in parts):
        return
    by_file = {part.file: part for part in parts}
    for table, _ in tables:
        part = by_file[table.file]
        if table.file in mapping or table.fields is not None or part.scores:
            continue
        if part.pairs is not None:
            raise _mapping_error(table, "label")
        if _VALUES & fields_of(table.frame).keys():
            raise MappingNeeded(
                table.file, table.frame, "query" if part.queries is None else "document"
            )


def _surely_labels(table: Table, mapping: Mapping[str, str] | None) -> bool:
    """Return whether the file contains labels, regardless of the other files."""
    fields = _label_of(table, mapping)
    if fields or mapping is not None or not table.names or table.fields is not None:
        return bool(fields)
    recognised = fields_of(table.frame)
    return "label" in recognised and not _score_or_label(table, recognised)


def _score_or_label(table: Table, fields: Mapping[str, str]) -> bool:
    """Return whether a column named score is read as labels only because of few distinct whole
    numbers, which a reranker may write too. A file named like a split contains labels."""
    if "label" not in fields or stem_of(table.file).lower() in SPLITS:
        return False
    return (fields["label"], "label") in doubts(fields, table.frame)


def _label_of(table: Table, mapping: Mapping[str, str] | None) -> dict[str, str]:
    """Return the field and the column of the label, empty if there is none."""
    if mapping is not None:
        fields: Mapping[str, str] = mapped(mapping, table.frame, table.file)
    elif table.fields is not None:
        fields = table.fields
    else:
        fields = recognise(table.columns) if table.names else {}
    return {"label": fields["label"]} if "label" in fields else {}


def _part(
    table: Table,
    source: Source,
    mapping: Mapping[str, str] | None,
    words: Words | None,
    *,
    alone: bool,
    beside_labels: bool,
) -> ParsedFile | None:
    """Return the part of a table; None if it contains either queries or documents, and only the
    other files can show which.

    beside_labels: another file certainly contains labels.
    """
    if not len(table) or not table.columns:
        table.refusals.stop_if_most(table.refusals.count)
        raise FormatError(
            "The file contains no rows.",
            remedy="Check that the file is complete.",
            file=table.file,
        )
    if mapping is not None:
        fields = mapped(mapping, table.frame, table.file)
    elif table.fields is not None:
        fields = dict(table.fields)
    elif table.names:
        fields = fields_of(table.frame)
        if not alone and fields.keys() == {"query_id", "doc_id"}:
            table = _as_systems(table, fields)
            fields = fields_of(table.frame)
        if beside_labels and _score_or_label(table, fields):
            fields["score"] = fields.pop("label")
        noticed = [*_doubts(table, fields), *several_labels(table, fields)]
        table = replace(table, findings=(*table.findings, *noticed))
    else:
        fields = _fields_without_names(table)
    if mapping is not None or (table.names and table.fields is None):
        note = Finding(
            "note",
            "columns" if mapping is None else "columns_chosen",
            "Columns: {columns}." if mapping is None else "Columns, as chosen: {columns}.",
            {"columns": named_columns(fields)},
            file=table.file,
        )
        table = replace(table, findings=(*table.findings, note))
    _refuse_objects(table, fields)
    table = trimmed_ids(table, [fields[key] for key in ("query_id", "doc_id") if key in fields])
    queries = bool({"query", "query_id"} & fields.keys())
    documents = bool({"document", "doc_id"} & fields.keys())
    values = bool(_VALUES & fields.keys())
    if queries and documents and (values or mapping is not None or not alone):
        return part_of(table, fields, source, words)
    if alone and mapping is not None:
        raise FormatError(
            "With this mapping, the file contains no {missing}.",
            remedy="Map a column to {missing}, or load the file that contains them together with "
            "this one.",
            file=table.file,
            missing=Phrase("documents") if queries else Phrase("queries"),
        )
    if queries and not documents and not alone:
        return queries_part(table, fields, source)
    if documents and not queries and not alone:
        return documents_part(table, fields, source)
    if queries and documents:
        raise _mapping_error(table, "label")
    if not queries and not documents and not alone:
        if id_and_text(table.frame) is not None or (not table.names and len(table.columns) == 2):
            return None
        raise _mapping_error(table, Phrase("query or document"))
    raise _mapping_error(table, "document" if queries else "query")


def _refuse_objects(table: Table, fields: Mapping[str, str]) -> None:
    """Raise FormatError if a column that the user mapped to a text contains objects."""
    for field in ("query", "document", "title"):
        column = fields.get(field)
        if column not in table.inner:
            continue
        objects = table.frame[column].str.startswith("{", na=False).to_numpy()
        if objects.any():
            raise FormatError(
                "The column {column} contains objects, so it cannot be the {field}.",
                remedy="Choose a column that contains texts.",
                file=table.file,
                line=int(table.lines[objects][0]),
                column=column,
                field=field,
            )


def _as_systems(table: Table, fields: Mapping[str, str]) -> Table:
    """Rename the columns of scores in a file with ids and no other known column to columns of
    systems."""
    used = fields.values()
    free = [name for name in table.columns if name not in used]
    names = {name: SYSTEM + name for name in free if holds_scores(name, table.frame[name])}
    return replace(table, cells=table.frame.rename(columns=names))


def _mapping_error(table: Table, missing: str) -> FormatError:
    """Return the error that requests a mapping of columns. If no mapping can help (values in lists
    or objects, or a JSON entry without known keys), return an error that lists the keys."""
    needed = MappingNeeded(table.file, table.frame.drop(columns=list(table.inner)), missing)
    guessed = {field for field, column in needed.guess.items() if column}
    pairs = {"query", "query_id"} & guessed and {"document", "doc_id"} & guessed
    nested = table.inner and not (pairs and (missing != "label" or "label" in guessed))
    if nested or (table.keys and len(table) == 1 and not known(table.columns)):
        return unknown_shape(table.file, ", ".join(table.keys[:20]))
    return needed


def _doubts(table: Table, fields: Mapping[str, str]) -> list[Finding]:
    return [
        Finding(
            "note",
            "read_as",
            "The column {column} is read as {field}, based on its values.",
            {"column": column, "field": field},
            "If it is something else, rename the column, for example to label, first_stage_score, "
            "query or document, and load the file again.",
            table.file,
        )
        for column, field in doubts(fields, table.frame)
    ]


def _fields_without_names(table: Table) -> dict[str, str]:
    """Return the fields of two columns of ids and one of numbers (labels); empty for others."""
    columns = list(table.frame.columns)
    if len(columns) == 3 and all(looks_like_ids(table.frame[name]) for name in columns[:2]):
        values = numbers(table.frame[columns[2]].to_numpy(dtype=object))
        if (values == values).any():
            return dict(zip(("query_id", "doc_id", "label"), columns, strict=True))
    return {}
