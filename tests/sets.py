"""Labelled sets to test on: the shipped sample, and real ones where they lie beside the project."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "assets" / "samples" / "helpcentre"
REAL = ROOT.parent / "shared" / "data"

SETS = {each.name: each for each in (SAMPLE, *sorted(REAL.glob("*/"))) if each.is_dir()}
"""Name → folder with corpus.jsonl, queries.jsonl, qrels.tsv and initial.trec; the sample first."""
