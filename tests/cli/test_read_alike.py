"""Made-up pairs of labels and a run, whole and hurt: the fast way through a file and the way line
by line say the same, to the last digit and the last line number."""

import random
from pathlib import Path

import pytest

from rankdash.cli import main
from rankdash.readers.formats import delimited, trec

FORMS = {" ": "trec", "\t": "trec", ",": "csv", ";": "csv"}
SCORES = ("3", "2.5", "1e-3", "-4", "1.0000000001")
ODD = ("nan", "inf", "x", "", "1_0", " 1", "0x1")
IDS = ("d{}", "{:03d}", "dé{}", "d\u00a0{}", "d{}" + "x" * 90)
NAMED = {0: "query_id", 2: "doc_id", 3: "label"}
RANKED = {0: "query_id", 2: "doc_id", 3: "rank", 4: "score"}


def hurt(rows: list[list[str]], value: int, draw: random.Random) -> list[list[str]]:
    """The rows with up to two things wrong."""
    for _ in range(draw.choice((0, 1, 2))):
        at = draw.randrange(len(rows))
        row = list(rows[at])
        match draw.randrange(10):
            case 0:
                rows.append(row)
            case 1:
                row[value] = draw.choice(SCORES)
                rows.append(row)
            case 2 if len(row) > value:
                row[value] = draw.choice(ODD)
                rows[at] = row
            case 3:
                rows[at] = row[:-1]
            case 4:
                rows[at] = [*row, "more"]
            case 5:
                rows.insert(at, [])
            case 6 if len(row) > 2:
                row[2] = draw.choice((row[2].upper(), row[2] + "\u00a0", "0" + row[2], ""))
                rows[at] = row
            case 7:
                draw.shuffle(rows)
            case 8 if len(row) > 4:
                row[3] = draw.choice(("x", "1.5", "9", ""))
                rows[at] = row
            case 9:
                del rows[at]
        rows = [each for each in rows if each or draw.random() < 0.9] or [row]
        if not all(len(each) > value for each in rows):
            break
    return rows


def write(path: Path, rows: list[list[str]], names: dict[int, str], draw: random.Random) -> str:
    separator = draw.choice(list(FORMS))
    if FORMS[separator] == "csv":
        rows = [[row[at] if at < len(row) else "" for at in names] if row else [] for row in rows]
        rows = [list(names.values()), *rows]
    end = draw.choice(("\n", "\n", "\r\n"))
    text = end.join(map(separator.join, rows)) + draw.choice((end, end, "", end * 2))
    path.write_bytes(text.encode(draw.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16"))))
    return str(path)


def pair(folder: Path, seed: int) -> list[str]:
    """Paths of labels and of a run; of one in eight so large that it is read in pieces."""
    draw = random.Random(seed)
    spelled = draw.choice(IDS).format
    docs = [spelled(number) for number in range(9)]
    queries = [f"q{number}" for number in range(draw.choice((1, 2, 12)))]
    labels = [[query, "0", doc, str(draw.randrange(-1, 4))]
              for query in queries for doc in draw.sample(docs, 4)]  # fmt: skip
    run = [[query, "Q0", doc, str(rank), draw.choice(SCORES), "tag"]
           for query in queries for rank, doc in enumerate(draw.sample(docs, 6), 1)]  # fmt: skip
    ahead = [(f"p{at // 9}", docs[at % 9]) for at in range(0 if seed % 8 else 90_000)]
    first = [[query, "0", doc, "1"] for query, doc in ahead]
    ranked = [[query, "Q0", doc, "1", "2.5", "tag"] for query, doc in ahead]
    return [
        write(folder / f"{seed}.qrels", [*first, *hurt(labels, 3, draw)], NAMED, draw),
        write(folder / f"{seed}.run", [*ranked, *hurt(run, 4, draw)], RANKED, draw),
    ]


@pytest.mark.parametrize("first", range(0, 36, 12))
def test_blocks_and_lines_give_the_same(first, tmp_path, monkeypatch, capfd):
    def said(files: list[str]) -> tuple[int, str, str]:
        code = main(["evaluate", *files, "--json", "--metric", "ndcg@10,map,judged@10"])
        return code, *capfd.readouterr()

    pairs = [pair(tmp_path, seed) for seed in range(first, first + 12)]
    fast = [said(files) for files in pairs]
    assert {code for code, _, _ in fast} <= {0, 2}
    for reader in (trec, delimited):
        monkeypatch.setattr(reader, "even_columns", lambda *_, **__: None)
    assert [said(files) for files in pairs] == fast
