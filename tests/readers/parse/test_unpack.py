"""`.gz` and `.zip`: damaged, hostile and too large archives are refused, with separate messages."""

import gzip
import io
import stat
import tracemalloc
import zipfile

import pytest

from rankdash.core.base.errors import LimitError
from rankdash.core.readers import ReadLimits
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.workspace_file import archive
from tests.readers.reading import limits, parse, shown, zipped

CSV = b"query,document,label\na,b,1\n"
MEGABYTE = 1_000_000
OUTSIDE = ("../evil.csv", "a/../../evil.csv", "/etc/evil.csv", "C:\\evil.csv", "..\\evil.csv",
           "c:evil")  # fmt: skip


def archive_with(*names: str, data: bytes = CSV, **info: int) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            entry = zipfile.ZipInfo(name)
            for field, value in info.items():
                setattr(entry, field, value)
            archive.writestr(entry, data)
    return packed.getvalue()


def changed(packed: bytes, at: int, value: bytes) -> bytes:
    """Return the archive with other bytes in its directory."""
    content = bytearray(packed)
    start = content.rindex(b"PK\x01\x02") + at
    content[start : start + len(value)] = value
    return bytes(content)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_becomes_of_archives(approved, tmp_path):
    gz, once = gzip.compress, zipped({"a.csv": CSV})
    many = gz(CSV * 1000)
    flipped = (
        many[: len(many) // 2] + bytes([many[len(many) // 2] ^ 0xFF]) + many[len(many) // 2 + 1 :]
    )
    tar = bytes(257) + b"ustar" + bytes(762)
    link = archive_with("a.csv", data=b"/etc/passwd", external_attr=(stat.S_IFLNK | 0o777) << 16)
    prose = b"Notes on how we labelled.\nIt took long.\n"
    old = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    office = {"[Content_Types].xml": b"<x/>"}
    papers = {
        "set/data.csv": CSV,
        "set/LICENSE": b"Some licence text, with commas, and lines\nand, more, lines\n",
        "set/README.md": b"# about\n",
        "__MACOSX/set/._data.csv": b"\x00\x05\x16\x07",
        "set/.DS_Store": b"\x00\x00\x00\x01Bud1",
    }
    one, other = CSV, CSV.replace(b"a,b", b"a,c")
    three = {"x.zip": zipped({"a.csv": one, "b.csv": other}), "c.csv": CSV.replace(b"a,b", b"a,d")}
    size = len(one) + len(other)
    sixes = {f"{n}.zip": zipped({f"{i}.csv": CSV for i in range(6)}) for n in range(2)}
    blanks = zipped({f"{i}.csv": CSV + b" " * 400_000 for i in range(4)})
    workspace = io.BytesIO()
    archive.export(Workspace(tmp_path / "home"), workspace, "1.0")
    cases = {
        "gz of two members is read whole": {"x.gz": gz(CSV) + gz(b"c,d,0\n")},
        "gz without its ending": {"data.csv": gz(CSV)},
        "gz with a flipped byte": {"x.gz": flipped},
        **{f"gz cut at {cut}": {"x.gz": gz(CSV * 100)[:cut]} for cut in (5, 20, -9, -1)},
        **{
            f"zip cut at {cut}": {"x.zip": zipped({"a.csv": CSV * 100})[:cut]}
            for cut in (10, 40, -30, -1)
        },
        "zip that fails its checksum": {
            "x.zip": archive_with("a.csv").replace(b"a,b,1", b"a,b,2")
        },
        **{f"the name {name} leads out": {"x.zip": archive_with(name)} for name in OUTSIDE},
        "a link": {"x.zip": link},
        "zip in zip": {"x": zipped({"inner": once})},
        "zip in gz": {"x": gz(once)},
        "gz in gz": {"x": gz(gz(CSV))},
        "gz in zip is read": {"x": zipped({"inner": gz(CSV)})},
        "gz in gz in zip": {"x": zipped({"inner": gz(gz(CSV))})},
        "tar": {"x.tar.gz": gz(tar)},
        "a budget for all files together": (
            {"x.zip": blanks}, limits(unpacked_bytes=MEGABYTE)
        ),
        "too many files": (sixes, limits(files=5)),
        "too many files over several archives": (sixes, limits(files=10)),
        "files are counted before any is unpacked": (three, limits(files=1, unpacked_bytes=1)),
        "as many files and bytes as allowed": (three, limits(files=3, unpacked_bytes=size)),
        "one file more": (three, limits(files=2)),
        "one byte more": (three, limits(unpacked_bytes=size - 1)),
        "a password": {"x.zip": changed(once, 8, b"\x01")},
        "a compression that is not read": {"x.zip": changed(once, 10, b"\x61")},
        "a version that is not read": {"x.zip": changed(once, 6, b"\x40")},
        "a name that is not UTF-8": {"x.zip": changed(changed(once, 46, b"\xff\xfe"), 9, b"\x08")},
        "a size that is not true": (
            {"x.zip": changed(zipped({"a.csv": b"a" * MEGABYTE}), 24, (100).to_bytes(4, "little"))},
            limits(unpacked_bytes=MEGABYTE // 2),
        ),
        "an empty zip": {"x.zip": zipped({})},
        "a zip of folders": {"x.zip": zipped({"folder/": b""})},
        "one name twice": {"x.zip": archive_with("a.csv", "a.csv")},
        "Chinese names of a zip made on Windows": {
            "x.zip": archive_with("cccc.csv").replace(b"cccc", "数据".encode("gbk"))
        },
        "papers and hidden files are set aside": {"x.zip": zipped(papers)},
        "a readme alone is data": {"readme.txt": CSV},
        "prose beside data in an archive is set aside": {
            "x.zip": zipped({"data.csv": CSV, "notes.txt": prose})
        },
        "prose alone in an archive": {"x.zip": zipped({"notes.txt": prose})},
        "prose beside a file": {"data.csv": CSV, "notes.txt": prose},
        "an old workbook": {"a.xls": old},
        "a binary one": {"a.xlsb": zipped({**office, "xl/workbook.bin": b"\x00"})},
        "an old one in a zip": {"set.zip": zipped({"a.xls": old})},
        "another office document": {"a.docx": zipped({**office, "word/document.xml": b"<x/>"})},
        "a workspace file, as a command is given it": {"all.rankdash.zip": workspace.getvalue()},
    }  # fmt: skip
    approved("readers/archives.en", shown(cases))


def test_a_bomb_is_stopped_while_unpacking():
    bomb = gzip.compress(b"a" * 50 * MEGABYTE)
    tracemalloc.start()
    with pytest.raises(LimitError, match=r"Unpacked, the files are larger than 2\.0 MB"):
        parse({"x.gz": bomb}, limits=ReadLimits(unpacked_bytes=2 * MEGABYTE))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * MEGABYTE
