"""Words of rankdash's own inside a message are in the reader's language like the rest of it."""

import json
import re

import pytest

from rankdash.analysis.labels.check import CheckReport
from rankdash.errors import DataError, Phrase, RankdashError
from rankdash.i18n import error_text, finding_text, speaking
from rankdash.loading import examine, load
from rankdash.readers import Source
from rankdash.rerankers import plugins
from rankdash.value.price_list import parse_prices
from rankdash.words.failures import problem

# Three words of English in a row that no library said: a sentence that was not translated.
ENGLISH = re.compile(r"[A-Za-z]{2,} [a-z]+ [a-z]+")


def in_chinese(error: RankdashError) -> str:
    with speaking("zh"):
        return error_text(error)


def test_a_phrase_is_its_english_text_and_is_translated_with_what_is_in_it():
    inner = Phrase("{name} is missing", name="qrels.parquet")
    error = DataError("{name} cannot be read: {reason}.", name="a", reason=inner)
    assert str(error) == "a cannot be read: qrels.parquet is missing."
    assert in_chinese(error) == "无法读取 a：缺少 qrels.parquet。"


def test_braces_of_a_user_stay_as_they_are():
    assert Phrase("{name} is missing", name="{x}") == "{x} is missing"
    assert str(DataError("{reason}", reason=Phrase("a {b}"))) == "a {b}"


@pytest.mark.parametrize(
    "start", [b"%PDF-1.7", b"\x89PNG\r\n", b"\x80\x04\x95", b"7z\xbc\xaf\x27\x1c", b"\x93NUMPY"]
)
def test_what_a_binary_file_is_has_a_chinese_name(start):
    with pytest.raises(DataError) as caught:
        load([Source("it.bin", start + b"\0" * 60)])
    assert not ENGLISH.search(in_chinese(caught.value))
    assert " a " not in in_chinese(caught.value)


def test_sentences_are_not_parted_by_a_blank_in_chinese():
    with pytest.raises(DataError) as caught:
        load([Source("empty.csv", b"")])
    assert in_chinese(caught.value) == "empty.csv：文件是空的。请检查文件是否完整写完。"


def test_ranks_that_are_none_have_a_chinese_remedy():
    rows = "query,document,label,rank\n" + "q,a,1,one\nq,b,0,two\n"
    with pytest.raises(DataError) as caught:
        load([Source("ranks.csv", rows.encode())])
    assert not ENGLISH.search(in_chinese(caught.value))


def test_the_first_stage_is_named_in_chinese_also_after_the_report_was_stored():
    files = [
        Source("qrels.txt", b"q0 0 d0 1\nq1 0 d1 0\nq1 0 d0 1\n"),
        Source("run.trec", b"x0 Q0 d0 1 3 bm25\nx0 Q0 d1 2 2 bm25\n"),
    ]
    report = examine(files).report
    assert report.errors[0].text == (
        "Queries of the ranking first stage that have a label: none of 1. The ranking has 'x0', "
        "the labels have 'q0'."
    )
    for each in (report, CheckReport.from_json(report.to_json())):
        with speaking("zh"):
            assert finding_text(each.errors[0]) == (
                "排序初排的查询中有标注的：0/1 条。排序中是 'x0'，标注中是 'q0'。"
            )


def test_what_a_file_holds_is_said_in_chinese_also_after_the_report_was_stored():
    rows = "query,document,label\n" + "q,a,1\nq,b,0\n"
    report = examine([Source("rows.csv", rows.encode())]).report
    stored = CheckReport.from_json(report.to_json())
    with speaking("zh"):
        said = [finding_text(each) for each in stored.findings]
    assert "读取格式：CSV，带文本的行。" in said
    assert not any(re.search(r"\b(queries|documents|rows)\b", each) for each in said)


@pytest.mark.parametrize(
    "change",
    [{"amount": -1}, {"unit": "moon"}, {"as_of": "soon"}, {"amount": "x"}, {"colour": "red"}],
)
def test_a_price_list_that_is_no_good_is_explained_in_chinese(change):
    good = {"key": "all", "provider": "P", "unit": "search", "amount": 1, "source": "s"}
    entry = {**good, "as_of": "2026-11-01", **change}
    with pytest.raises(DataError) as caught:
        parse_prices(json.dumps({"prices": [entry]}).encode(), "mine.json")
    said = in_chinese(caught.value)
    assert said.startswith("mine.json：")
    assert not ENGLISH.search(said)


def test_a_plugin_that_is_not_there_is_named_without_the_name_of_an_exception(tmp_path):
    (found,) = plugins.find([str(tmp_path / "gone.py")], ()).problems
    file = tmp_path / "gone.py"
    assert str(found) == (
        f"The plugin {file} is not loaded: there is no such file. Repair it, or start rankdash "
        "without it."
    )
    assert in_chinese(found) == (
        f"插件 {file} 未加载：没有这个文件。请修好它，或不带它启动 rankdash。"
    )


def test_the_reason_that_a_job_left_behind_is_said_in_chinese():
    left = RankdashError(
        "The service at {host} cannot be reached: {reason}.",
        remedy="Check that it runs and that the base URL is right; resume continues from here.",
        host="127.0.0.1:9",
        reason="there is no connection ([Errno 111] Connection refused) (after 5 attempts)",
    )
    with speaking("zh"):
        said = problem(left)
    assert said == (
        "无法连接 127.0.0.1:9 上的服务：无法连接（[Errno 111] Connection refused）"
        "（尝试 5 次之后）。请确认服务正在运行且地址正确；“继续”会从这里接着进行。"
    )
