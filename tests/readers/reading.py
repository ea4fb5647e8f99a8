"""Results of reading files, as a text: the data with each finding, or the error. Tests compare it
with the approved text; the name of a case describes it."""

import io
import zipfile
from collections.abc import Callable, Iterator, Mapping

from rankdash.core import readers
from rankdash.core.base.errors import DataError, LimitError, Phrase, RefusedFilesError
from rankdash.core.data.ranking import Ranking
from tests.approved import table

Files = Mapping[str, str | bytes]
# Files, optionally with options for reading them.
Case = Files | tuple[Files, Mapping[str, object]]
_MOST = 12
# Notes with the same content as the lines above them.
_SHOWN, _MADE = ("columns", "format"), ("made_query_id", "made_doc_id")


def sources(files: Files) -> list[readers.Source]:
    return [
        readers.Source(name, data.encode() if isinstance(data, str) else data)
        for name, data in files.items()
    ]


def parse(contents: Files, **options: object) -> readers.Parsed:
    return readers.read(sources(contents), **options)


def zipped(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return packed.getvalue()


def repacked(packed: bytes, change: Callable[[str, bytes], bytes]) -> bytes:
    """Return the archive with each of its files changed by `change`."""
    with zipfile.ZipFile(io.BytesIO(packed)) as source:
        return zipped({name: change(name, source.read(name)) for name in source.namelist()})


def shown(cases: Mapping[str, Case]) -> str:
    """Return each case by its name, and below it the result of its files; each remedy only at its
    first occurrence."""
    remedies: set[str] = set()
    return table((name, "\n".join(_told(case, remedies)) + "\n") for name, case in cases.items())


def _told(case: Case, remedies: set[str]) -> Iterator[str]:
    files, chosen = case if isinstance(case, tuple) else (case, {})
    try:
        yield from lines_of(readers.read(sources(files), **chosen))
    except DataError as error:
        yield from _refusal(error, remedies)


def limits(**of: int) -> Mapping[str, object]:
    """Return options that limit the size of a file."""
    return {"limits": readers.ReadLimits(**of)}


def _refusal(error: DataError, remedies: set[str]) -> Iterator[str]:
    if isinstance(error, readers.MappingNeeded):
        guess = ", ".join(f"{field} = {column}" for field, column in error.guess.items() if column)
        yield f"asked for {error.missing} of {error.file}: {', '.join(error.columns)}"
        yield f"guessed: {guess or 'nothing'}"
    elif isinstance(error, readers.WordsNeeded):
        words = ", ".join(f"{word.text} = {_number(word.grade)}" for word in error.words)
        yield f"asked for the words of {error.file}: {words}"
    elif isinstance(error, readers.BaselineNeeded):
        yield f"asked for the search of today: {', '.join(error.rankings)}"
    elif isinstance(error, RefusedFilesError):
        for each in error.errors:
            yield from _refusal(each, remedies)
    else:
        assert error.remedy, error
        kind = "too large" if isinstance(error, LimitError) else "refused"
        # A library's description of a fault depends on its version.
        params = {
            name: "<reason>" if name == "problem" and not isinstance(value, Phrase) else value
            for name, value in error.params.items()
        }
        yield f"{kind}: {_of(error.where)}{error.template.format(**params)}"
        if error.remedy not in remedies:
            remedies.add(error.remedy)
            yield f"remedy: {error.remedy.format(**error.params)}"


def lines_of(parsed: readers.Parsed) -> Iterator[str]:
    formats: dict[str, list[str]] = {}
    for file, found in parsed.formats.items():
        formats.setdefault(found, []).append(file)
    yield "; ".join(f"{', '.join(files)}: {found}" for found, files in formats.items())
    labels: dict[str, list[str]] = {}
    for query, doc, label in parsed.qrels.itertuples(index=False, name=None):
        labels.setdefault(query, []).append(f"{doc} = {_number(label)}")
    for row in parsed.queries.to_dict("records"):
        query, text = row.pop("query_id"), row.pop("text")
        kinds = [f"{name}: {value}" for name, value in row.items() if isinstance(value, str)]
        yield " | ".join([_named(query, text), *kinds, _some(labels.pop(query, []), ", ")])
    assert not labels
    texts = [
        " | ".join([_named(row["doc_id"], row["text"]), *_words(row["title"])])
        for row in parsed.documents.to_dict("records")
    ]
    told = parsed.documents[["title", "text"]].notna().any(axis=None)
    yield f"documents: {_some(texts, '; ')}" if told else f"{len(texts)} documents without texts"
    labelled = set(parsed.qrels[["query_id", "doc_id"]].itertuples(index=False, name=None))
    pairs = set(parsed.pairs.itertuples(index=False, name=None))
    if parsed.candidates is not None:
        yield f"first stage {parsed.candidates_name!r}: {_ranked(parsed.candidates)}"
    elif pairs and pairs != labelled:
        yield f"pairs: {', '.join(f'{query} {doc}' for query, doc in sorted(pairs))}"
    if parsed.open_choice:
        yield f"any may be the first stage: {', '.join(parsed.open_choice)}"
    for name, ranking in parsed.rankings.items():
        yield f"system {name!r}: {_ranked(ranking)}"
    if made := [f"{each.code} x{each.count}" for each in parsed.findings if each.code in _MADE]:
        yield f"note: {', '.join(made)}"
    for each in parsed.findings:
        if each.code not in (*_SHOWN, *_MADE):
            params = ", ".join(
                f"{name} {_short(value)}"
                for name, value in each.params.items()
                if name != "count" and value != ""
            )
            shown = "; ".join(map(_short, each.examples))
            yield (
                f"{each.severity}: {_of(each.where)}{each.code} x{each.count}"
                + f" ({params})" * bool(params)
                + f": {shown}" * bool(shown)
            )


def _some(texts: list[str], between: str) -> str:
    more = f" … {len(texts)} in all" if len(texts) > _MOST else ""
    return between.join(texts[:_MOST]) + more


def _of(where: str) -> str:
    return f"{where}: " if where else ""


def _named(identity: str, text: object) -> str:
    return f"{_short(identity)} {text[:70]!r}" if isinstance(text, str) else _short(identity)


def _words(text: object) -> list[str]:
    return [repr(text)] if isinstance(text, str) and text else []


def _short(value: object) -> str:
    text = _number(value) if isinstance(value, float) else str(value)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= 120 else f"{text[:120]}…"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.12g}"


def _ranked(ranking: Ranking) -> str:
    lists = []
    for query in ranking.query_ids[:5]:
        docs, scores = ranking.documents_of(query)
        some = zip(docs[:_MOST], scores.tolist(), strict=False)
        lists.append(f"{query}: {', '.join(f'{doc} {_number(score)}' for doc, score in some)}")
    return f"{'; '.join(lists)} (ties: {ranking.ties})"
