"""Builds the site of the docs, in English and Chinese, with search, without a network.

    python -m tests.site

writes the folder `site`; serve it, because search needs a server. A link or an anchor that does
not exist ends the build. CONTRIBUTING, SECURITY, CHANGELOG and the Python reference are pages too.
Pages without a Chinese version are in English there. docs/requirements.txt lists the requirements.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from tests import api
from tests.documented import DOCS, ROOT, anchors, headings, text_of

SITE = ROOT / "site"
# Files next to the folder `docs` → pages. The READMEs are the first page.
BESIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "index.md",
    "README.zh-CN.md": "index.md",
}
_NOT_PAGES = shutil.ignore_patterns("*.toml", "*.txt")
_LANGUAGES = {"en": "English", "zh": "简体中文"}
# A word ends at each Chinese character, so that a search finds any part of a Chinese text.
_SEPARATOR = (
    r"[\s\-_,:!=\[\]()`/，。、：；？！（）“”《》]+|\.(?!\d)"
    r"|(?<=[\u3400-\u9fff])|(?=[\u3400-\u9fff])"
)
_STYLE = """\
:root, [data-md-color-scheme="slate"] {
  --md-primary-fg-color: #475569;
  --md-accent-fg-color: #0284c7;
}
"""


def build(target: Path = SITE) -> str:
    """Build the site into a folder and return the problems, or "" if there are none."""
    problems = ""
    with tempfile.TemporaryDirectory() as folder:
        for language in _LANGUAGES:
            own = Path(folder) / language
            stage(own, language)
            done = subprocess.run(
                [sys.executable, "-m", "zensical", "build", "--clean", "--strict"],
                cwd=own, check=False, capture_output=True, text=True,
            )  # fmt: skip
            if done.returncode:
                problems += re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)
        if not problems:
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(Path(folder) / "en" / "site", target)
            shutil.copytree(Path(folder) / "zh" / "site", target / "zh")
    return problems


def stage(folder: Path, language: str) -> None:
    """Write the sources of the site in one language."""
    docs = folder / "docs"
    shutil.copytree(DOCS, docs, ignore=_NOT_PAGES)
    for chinese in [*docs.rglob("*.zh.md")]:
        english = chinese.with_name(chinese.name.replace(".zh.md", ".md"))
        if language == "zh":
            english.write_text(_translated(text_of(english), text_of(chinese)), encoding="utf-8")
        chinese.unlink()
    for name, page in BESIDE.items():
        if page != "index.md":
            text = text_of(ROOT / name).replace("](docs/", "](")
            (docs / page).write_text(text, encoding="utf-8")
    (docs / "api.md").write_text(api.text(), encoding="utf-8")
    for page in docs.rglob("*.md"):
        up = "../" * (len(page.relative_to(docs).parts) - 1)
        page.write_text(_linked(text_of(page), up), encoding="utf-8")
    shutil.copy(ROOT / "assets" / "logo.svg", docs)
    (docs / "site.css").write_text(_STYLE, encoding="utf-8")
    config = json.dumps(_config(language), ensure_ascii=False)
    (folder / "mkdocs.yml").write_text(config, encoding="utf-8")


def _translated(english: str, chinese: str) -> str:
    """Return a Chinese page, its headings with the anchors of the English page."""
    for heading, anchor in zip(headings(chinese), anchors(english), strict=True):
        chinese = chinese.replace(f"\n{heading}\n", f"\n{heading} {{ #{anchor} }}\n", 1)
    return chinese


def _linked(text: str, up: str) -> str:
    """Return the text of a page with links within the site, and lists indented by four spaces.

    up: the path from the page to the folder of all pages.
    """
    for name, page in BESIDE.items():
        text = re.sub(rf"\]\((\.\./)*{re.escape(name)}", f"]({up}{page}", text)
    text = re.sub(r"(\]\([\w./-]+)\.zh\.md", r"\1.md", text)
    # Blocks of code at the start of a line are not in lists.
    parts = re.split(r"(^```.*?^```)", text, flags=re.DOTALL | re.MULTILINE)
    parts[::2] = [
        re.sub(r"^   (?=\S|    )", "    ", each, flags=re.MULTILINE) for each in parts[::2]
    ]
    return "".join(parts)


def _config(language: str) -> dict[str, Any]:
    sections = tomllib.loads(text_of(DOCS / "site.toml"))["sections"]
    at = [*_LANGUAGES].index(language)
    # Anchors as GitHub makes them.
    slugify = {"object": "pymdownx.slugs.slugify", "kwds": {"case": "lower"}}
    up = {"en": ("./", "./zh/"), "zh": ("../", "./")}[language]
    return {
        "site_name": "rankdash",
        "use_directory_urls": False,
        "nav": [
            {each["titles"][at]: [f"{page}.md" for page in each["pages"]]} for each in sections
        ],
        "theme": {
            "language": language,
            "font": False,
            "logo": "logo.svg",
            "favicon": "logo.svg",
            "features": ["content.code.copy", "navigation.tabs", "navigation.top", "toc.follow"],
            "palette": {"primary": "custom", "accent": "custom"},
        },
        "extra": {
            "generator": False,
            "alternate": [
                {"name": name, "lang": code, "link": link}
                for (code, name), link in zip(_LANGUAGES.items(), up, strict=True)
            ],
        },
        "extra_css": ["site.css"],
        "plugins": [{"search": {"separator": _SEPARATOR}}],
        "markdown_extensions": [
            "attr_list",
            "tables",
            {"toc": {"permalink": True, "slugify": slugify}},
            "pymdownx.highlight",
            "pymdownx.superfences",
        ],
    }


def main() -> int:
    problems = build()
    print(problems or f"Written: {SITE / 'index.html'}")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
