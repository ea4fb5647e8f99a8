"""`export`: files in the formats of other tools."""

import rankdash as rd
from rankdash.features.report.report_formats import FORMATS
from tests.reporting.exports.test_exports import study_of


def test_the_command_writes_the_same_files(run, tmp_path):
    rd.export(study_of().dataset, (), tmp_path / "data", "beir")
    for name, form in FORMATS.items():
        target = tmp_path / f"by-command-{name}"
        done = run("export", name, "--data", tmp_path / "data", "--out", target)
        assert done.code == 0, done.err
        made = [target] if target.is_file() else sorted(p for p in target.rglob("*") if p.is_file())
        assert made
        assert target.is_dir() == form.folder
    shown = run("export", "quepid", "--data", tmp_path / "data", "--out", "-")
    assert shown.out == (tmp_path / "by-command-quepid").read_text(encoding="utf-8")
    refused = run("export", "ranx", "--data", tmp_path / "data", "--out", "-")
    assert refused.code == 2
    assert "several files" in refused.err
