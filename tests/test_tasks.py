"""The pages of docs/tasks show the actual output of their commands and code."""

import re

import pytest

from tests.documented import text_of
from tests.sets import SAMPLE
from tests.tasks import PAGES, RENEW, TASKS, outputs

BLOCK = re.compile(r"^```\w+\n.*?^```$", re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_output_is_what_the_command_above_it_writes(page, tmp_path):
    shown = outputs(text_of(page), tmp_path)
    assert shown
    assert [each.page for each in shown] == [each.real for each in shown], RENEW


def test_chinese_pages_have_the_same_code_and_outputs():
    for chinese in TASKS.glob("*.zh.md"):
        english = chinese.with_name(chinese.name.replace(".zh.md", ".md"))
        assert BLOCK.findall(text_of(chinese)) == BLOCK.findall(text_of(english)), RENEW


def test_neural_rerankers_are_those_that_made_the_runs_of_the_sample():
    notice = text_of(SAMPLE / "NOTICE.md")
    lines = [line for page in PAGES for line in text_of(page).splitlines()]
    neural = [line for line in lines if re.search(r"--reranker (bi|cross)-encoder", line)]
    assert neural
    for line in neural:
        (reranker,) = re.findall(r"--reranker \S+ --set model=\S+", line)
        assert reranker in notice
