"""Runs the code of a notebook in this process, as Jupyter would: `python -m tests.notebooks` writes
the outputs of its cells into the notebook of the docs."""

import ast
import io
import json
import warnings
from collections.abc import Mapping
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[1] / "docs" / "first_steps.ipynb"

Output = dict[str, Any]


def outputs(notebook: Mapping[str, Any], folder: Path) -> list[list[Output]]:
    """Return the outputs of each code cell in nbformat's form. folder: its working directory."""
    names: dict[str, Any] = {}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    with chdir(folder):
        return [_shown("".join(cell["source"]), names, at) for at, cell in enumerate(cells, 1)]


def _shown(code: str, names: dict[str, Any], number: int) -> list[Output]:
    *statements, last = ast.parse(code).body
    value, printed = None, io.StringIO()
    with warnings.catch_warnings(record=True) as said, redirect_stdout(printed):
        warnings.simplefilter("always", UserWarning)
        exec(compile(ast.Module(statements, []), "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        else:
            exec(compile(ast.Module([last], []), "cell", "exec"), names)
    told = "".join(f"UserWarning: {each.message}\n" for each in said)
    streams = {"stderr": told, "stdout": printed.getvalue()}
    found: list[Output] = [
        {"output_type": "stream", "name": name, "text": _lines(text)}
        for name, text in streams.items()
        if text
    ]
    if value is not None:
        data = {"text/plain": _lines(str(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        result = {"output_type": "execute_result", "execution_count": number, "metadata": {}}
        found.append({**result, "data": data})
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for at, shown in enumerate(outputs(notebook, NOTEBOOK.parent)):
        cells[at].update(outputs=shown, execution_count=at + 1)
    NOTEBOOK.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
