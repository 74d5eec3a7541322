"""Runs the cells of a notebook as a kernel does, without one; with --write keeps what they show.

python tests/docs/notebook_cells.py --write docs/notebooks/*.ipynb
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def run_cells(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Outputs of every code cell: what it prints, and how its last expression is shown."""
    names: dict[str, Any] = {"__name__": "__main__"}
    return [
        run_cell("".join(cell["source"]), names, number)
        for number, cell in enumerate(code_cells(notebook), start=1)
    ]


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cell(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    tree = ast.parse(source, f"cell {number}")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    outputs: list[dict[str, Any]] = []
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)
        value = None
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines(text)})
    if value is not None:
        shown = {"text/plain": lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            shown["text/html"] = lines(value._repr_html_())
        outputs.append(
            {
                "data": shown,
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return outputs


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> int:
    paths = [Path(word).absolute() for word in sys.argv[1:] if word != "--write"]
    for path in paths:
        notebook = json.loads(path.read_text())
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            outputs = run_cells(notebook)
            os.chdir("/")
        for number, (cell, shown) in enumerate(zip(code_cells(notebook), outputs, strict=True), 1):
            cell |= {"execution_count": number, "outputs": shown}
        if "--write" in sys.argv:
            path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
