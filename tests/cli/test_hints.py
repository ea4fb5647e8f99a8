"""What a command says when a name or a document is looked for."""

import re

import pytest

from rankdash.cli.main import COMMANDS, main
from tests.sets import ROOT, SAMPLE

HELP = [
    *([name] for name in COMMANDS),
    *(["label", each] for each in ("plan", "next", "add", "status")),
    *(["judge", each] for each in ("run", "agreement")),
    *(["workspace", each] for each in ("export", "import", "repair", "check")),
]


@pytest.mark.parametrize("command", HELP, ids=" ".join)
def test_help_points_to_documents_that_exist_and_cover_the_option(command, capsys):
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    said = capsys.readouterr().out
    assert "README" not in said
    for page in re.findall(r"docs/[\w.]+", said):
        assert (ROOT / page).is_file()


@pytest.mark.parametrize(
    ("option", "page", "heading"),
    [("--plugin", "docs/rerankers.md", "A reranker of your own"),
     ("--assumptions", "docs/cost.md", "--assumptions")],
)  # fmt: skip
def test_the_page_explains_the_option(option, page, heading, capsys):
    command = "rerank" if option == "--plugin" else "report"
    with pytest.raises(SystemExit):
        main([command, "--help"])
    said = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert re.search(rf"{option} FILE .{{0,250}}\({page}\)", said)
    assert heading in (ROOT / page).read_text()


def test_a_service_is_not_taken_for_a_similar_name(capsys, tmp_path):
    out = str(tmp_path / "run.trec")
    assert main(["rerank", "--data", str(SAMPLE), "--reranker", "cohere", "--out", out]) == 2
    said = capsys.readouterr().err
    assert "use the reranker 'endpoint' with dialect=cohere" in said
    assert "Did you mean" not in said
