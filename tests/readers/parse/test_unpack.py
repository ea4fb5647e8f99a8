"""`.gz` and `.zip`: damaged, hostile and too large archives are refused; each with its message."""

import gzip
import io
import stat
import tracemalloc
import zipfile

import pytest

from rankdash import sharing
from rankdash.errors import FormatError, LimitError
from rankdash.readers import ReadLimits
from rankdash.store import Workspace

CSV = b"query,document,label\na,b,1\n"
MEGABYTE = 1_000_000


def archive_with(name: str, data: bytes = CSV, **info: int) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        entry = zipfile.ZipInfo(name)
        for field, value in info.items():
            setattr(entry, field, value)
        archive.writestr(entry, data)
    return packed.getvalue()


@pytest.mark.parametrize("cut", [5, 20, -9, -1])
def test_a_truncated_gz_is_refused_and_nothing_is_kept(parse, gz, cut):
    with pytest.raises(FormatError, match="gzip archive is damaged or cut short") as refused:
        parse({"data.csv.gz": gz(CSV * 100)[:cut]})
    assert refused.value.file == "data.csv.gz"


def test_a_gz_with_a_flipped_byte_is_refused(parse, gz):
    packed = bytearray(gz(CSV * 1000))
    packed[len(packed) // 2] ^= 0xFF

    with pytest.raises(FormatError, match="damaged"):
        parse({"x.gz": bytes(packed)})


def test_a_gz_of_two_members_is_read_whole(parse, gz):
    assert len(parse({"x.gz": gz(CSV) + gz(b"c,d,0\n")}).qrels) == 2


@pytest.mark.parametrize("cut", [10, 40, -30, -1])
def test_a_truncated_zip_is_refused(parse, zipped, cut):
    with pytest.raises(FormatError, match="zip archive is damaged or cut short"):
        parse({"x.zip": zipped({"a.csv": CSV * 100})[:cut]})


def test_a_zip_whose_content_fails_its_checksum_is_refused(parse):
    packed = archive_with("a.csv").replace(b"a,b,1", b"a,b,2")

    with pytest.raises(FormatError, match="damaged"):
        parse({"x.zip": packed})


@pytest.mark.parametrize(
    "name",
    ["../evil.csv", "a/../../evil.csv", "/etc/evil.csv", "C:\\evil.csv", "..\\evil.csv", "c:evil"],
)
def test_names_that_lead_out_of_the_archive_are_refused(parse, name):
    with pytest.raises(LimitError, match="leads out of it") as refused:
        parse({"x.zip": archive_with(name)})
    assert refused.value.file == "x.zip"
    assert "relative" in refused.value.remedy


def test_links_are_refused(parse):
    packed = archive_with("a.csv", b"/etc/passwd", external_attr=(stat.S_IFLNK | 0o777) << 16)

    with pytest.raises(LimitError, match=r"holds a link: 'a\.csv'"):
        parse({"x.zip": packed})


@pytest.mark.parametrize("outer", ["zip", "gz"])
@pytest.mark.parametrize("inner", ["zip", "gz"])
def test_archives_inside_archives_are_refused_but_for_gz_inside_zip(
    parse, gz, zipped, outer, inner
):
    pack = {"zip": lambda data: zipped({"inner": data}), "gz": gz}
    packed = pack[outer](pack[inner](CSV))
    if (outer, inner) == ("zip", "gz"):
        assert len(parse({"x": packed}).qrels) == 1
        packed = pack[outer](gz(gz(CSV)))
    with pytest.raises(LimitError, match="archive inside an archive"):
        parse({"x": packed})


def test_a_tar_is_refused_with_the_remedy_to_unpack(parse, gz):
    tar = bytearray(1024)
    tar[257:262] = b"ustar"

    with pytest.raises(LimitError, match="Unpack"):
        parse({"x.tar.gz": gz(bytes(tar))})


def test_a_bomb_is_stopped_while_unpacking(parse, gz):
    bomb = gz(b"a" * 50 * MEGABYTE)

    tracemalloc.start()
    with pytest.raises(LimitError, match=r"Unpacked, the files are larger than 2\.0 MB"):
        parse({"x.gz": bomb}, limits=ReadLimits(unpacked_bytes=2 * MEGABYTE))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 12 * MEGABYTE


def test_a_zip_that_lies_about_its_size_is_stopped_while_unpacking(parse, zipped):
    packed = bytearray(zipped({"a.csv": b"a" * 20 * MEGABYTE}))
    directory = packed.rindex(b"PK\x01\x02")
    packed[directory + 24 : directory + 28] = (100).to_bytes(4, "little")

    with pytest.raises((LimitError, FormatError)):
        parse({"x.zip": bytes(packed)}, limits=ReadLimits(unpacked_bytes=MEGABYTE))


def test_the_budget_is_for_all_files_together(parse, zipped):
    packed = zipped({f"{i}.csv": CSV + b" " * 400_000 for i in range(4)})

    with pytest.raises(LimitError, match=r"x.zip/2.csv.*Unpacked"):
        parse({"x.zip": packed}, limits=ReadLimits(unpacked_bytes=MEGABYTE))


def test_too_many_files_in_a_zip(parse, zipped):
    packed = zipped({f"{i}.csv": CSV for i in range(11)})

    with pytest.raises(LimitError, match="more than 10 files"):
        parse({"x.zip": packed}, limits=ReadLimits(files=10))


def test_too_many_files_over_several_archives(parse, zipped):
    packed = {f"{n}.zip": zipped({f"{i}.csv": CSV for i in range(6)}) for n in range(2)}

    with pytest.raises(LimitError, match=r"1\.zip: There are more than 10 files"):
        parse(packed, limits=ReadLimits(files=10))


def test_a_readme_alone_is_read_as_data(parse):
    assert len(parse({"readme.txt": CSV}).qrels) == 1


def test_a_password_is_told(parse, zipped):
    packed = bytearray(zipped({"a.csv": CSV}))
    packed[packed.rindex(b"PK\x01\x02") + 8] |= 1

    with pytest.raises(FormatError, match="password"):
        parse({"x.zip": bytes(packed)})


def test_a_compression_that_is_not_read_is_told(parse, zipped):
    packed = bytearray(zipped({"a.csv": CSV}))
    packed[packed.rindex(b"PK\x01\x02") + 10] = 97

    with pytest.raises(FormatError, match="compression"):
        parse({"x.zip": bytes(packed)})


def test_an_empty_zip_and_a_zip_of_folders_hold_no_files(parse, zipped):
    for members in ({}, {"folder/": b""}):
        with pytest.raises(FormatError, match="holds no files"):
            parse({"x.zip": zipped(members)})


def test_the_same_name_twice_in_a_zip_is_refused(parse):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.csv", CSV)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a.csv", CSV)

    with pytest.raises(FormatError, match="holds twice: 1"):
        parse({"x.zip": packed.getvalue()})


def test_chinese_names_of_a_zip_made_on_windows_are_readable(parse):
    packed = archive_with("cccc.csv").replace(b"cccc", "数据".encode("gbk"))

    assert list(parse({"x.zip": packed}).formats) == ["x.zip/数据.csv"]


def test_papers_and_hidden_files_are_set_aside_with_a_note(parse, zipped):
    members = {
        "set/data.csv": CSV,
        "set/LICENSE": b"Some licence text, with commas, and lines\nand, more, lines\n",
        "set/README.md": b"# about\n",
        "__MACOSX/set/._data.csv": b"\x00\x05\x16\x07",
        "set/.DS_Store": b"\x00\x00\x00\x01Bud1",
    }

    parsed = parse({"x.zip": zipped(members)})

    assert list(parsed.formats) == ["x.zip/set/data.csv"]
    assert sorted(f.file for f in parsed.findings if f.code == "paper") == sorted(
        f"x.zip/{name}" for name in members if name != "set/data.csv"
    )


def test_other_prose_in_an_archive_is_set_aside_with_a_warning_and_alone_refused(parse, zipped):
    prose = b"Notes on how we labelled.\nIt took long.\n"

    parsed = parse({"x.zip": zipped({"data.csv": CSV, "notes.txt": prose})})

    (finding,) = [f for f in parsed.findings if f.code == "not_data"]
    assert (finding.severity, finding.file) == ("warning", "x.zip/notes.txt")
    with pytest.raises(FormatError, match="form of the file is not known"):
        parse({"data.csv": CSV, "notes.txt": prose})
    with pytest.raises(FormatError, match="form of the file is not known"):
        parse({"x.zip": zipped({"notes.txt": prose})})


def test_gz_is_recognised_without_its_ending(parse):
    assert len(parse({"data.csv": gzip.compress(CSV)}).qrels) == 1


def test_old_workbooks_are_told_wherever_they_come(parse, zipped):
    binary = zipped({"[Content_Types].xml": b"<x/>", "xl/workbook.bin": b"\x00"})
    old = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    for files in (
        {"a.xlsb": binary},
        {"a.xls": old},
        {"set.zip": zipped({"a.xls": old})},
    ):
        with pytest.raises(FormatError, match="Excel workbook") as refused:
            parse(files)
        assert "CSV" in refused.value.remedy


def test_a_workspace_file_is_told_with_what_to_do(parse, tmp_path):
    """Also by a command, where nothing asks first what the archive is."""
    content = io.BytesIO()
    sharing.export(Workspace(tmp_path / "home"), content, "1.0")
    with pytest.raises(FormatError) as refused:
        parse({"all.rankdash.zip": content.getvalue()})
    assert refused.value.message == "It is a workspace file, not the files of one data set."
    assert "rankdash workspace import FILE" in refused.value.remedy
    assert refused.value.file == "all.rankdash.zip"


def test_another_office_document_is_told(parse, zipped):
    with pytest.raises(FormatError, match="Office document"):
        parse({"a.docx": zipped({"[Content_Types].xml": b"<x/>", "word/document.xml": b"<x/>"})})


def test_as_many_files_and_bytes_as_allowed_are_unpacked_and_one_more_is_not(parse, zipped):
    csv = {"a.csv": b"query,document,label\na,b,1\n", "b.csv": b"query,document,label\na,c,1\n"}
    size = sum(map(len, csv.values()))
    files = {"x.zip": zipped(csv), "c.csv": b"query,document,label\na,d,1\n"}

    assert len(parse(files, limits=ReadLimits(files=3, unpacked_bytes=size)).qrels) == 3
    with pytest.raises(LimitError, match="more than 2 files"):
        parse(files, limits=ReadLimits(files=2))
    with pytest.raises(LimitError, match="Unpacked"):
        parse(files, limits=ReadLimits(unpacked_bytes=size - 1))


def test_files_are_counted_before_any_is_unpacked(parse, zipped):
    packed = zipped({"a.csv": CSV, "b.csv": CSV})

    with pytest.raises(LimitError, match="more than 1 files"):
        parse({"x.zip": packed}, limits=ReadLimits(files=1, unpacked_bytes=1))
