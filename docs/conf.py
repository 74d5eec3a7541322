"""How the pages are built: ``make docs``.

Sphinx, since it reads numpydoc docstrings as they are, its search works from a folder without a
server, and nothing that it makes asks another machine. Pages are Markdown, so they read as well
where the repository is shown.
"""

from __future__ import annotations

import os.path
import pkgutil
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from types import GenericAlias
from typing import Any

from docutils import nodes
from jinja2 import PackageLoader
from jinja2.sandbox import SandboxedEnvironment
from numpydoc import docscrape_sphinx

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))

project = "cppcl"
copyright = "the authors of cppcl, BSD-3-Clause"
html_title = "cppcl"
html_theme = "furo"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
exclude_patterns = ["_build"]
# A page that the contents name may not be written yet, and one that is may not be named yet.
suppress_warnings = ["toc.empty_glob", "toc.not_included"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

default_role = "py:obj"
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"  # types stand in the docstrings, with shapes
numpydoc_show_class_members = False
# numpydoc compiles its template anew for every docstring, a quarter of the time of a build.
TEMPLATES = SandboxedEnvironment(loader=PackageLoader("numpydoc"))
docscrape_sphinx.SandboxedEnvironment = lambda **options: TEMPLATES

ELSEWHERE = {
    "README.md": "project/readme.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "SUPPORT.md": "project/support.md",
    "deployments/README.md": "project/deployments.md",
    "storage/README.md": "project/storage.md",
}
"""Pages that lie beside what they are about, and where they are among these."""

MODULES = re.compile(r"<!-- modules of (\S+) -->")
TEXT = re.compile(r"<!-- text of (\S+) -->")
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)#:\s]+)(?P<place>#[^)]*)?\)")


def modules_of(package: str) -> list[str]:
    """Return a package and its public modules; those of packages inside a package count too.

    The root package `cppcl` has a page for each of its packages, so it is listed without them.
    """
    spec = find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise ValueError(f"{package} is no package: mend the page that asks for its modules")
    names = [package]
    for found in pkgutil.iter_modules(spec.submodule_search_locations, f"{package}."):
        if found.name.split(".")[-1].startswith("_"):
            continue
        if not found.ispkg:
            names.append(found.name)
        elif package != "cppcl":
            names += modules_of(found.name)
    return names


def reference_of(package: str) -> str:
    """Markdown of what the modules of a package offer, a section for each."""
    return "\n".join(
        f"## {name}\n\n```{{eval-rst}}\n.. automodule:: {name}\n```\n"
        for name in modules_of(package)
    )


def relinked(text: str, folder: Path, page: Path) -> str:
    """Markdown whose links from a folder lead to the same from a page.

    What is no page, such as code, is named without a link. What does not exist is left as it is,
    so that the build complains of it.
    """

    def link(found: re.Match[str]) -> str:
        target = (folder / found["target"]).resolve()
        if not target.exists() or not target.is_relative_to(ROOT):
            return found[0]
        name = ELSEWHERE.get(target.relative_to(ROOT).as_posix())
        target = DOCS / name if name else target
        if not target.is_relative_to(DOCS):
            return found["text"]
        path = os.path.relpath(target, page.parent)
        return f"{found['image']}[{found['text']}]({path}{found['place'] or ''})"

    return LINK.sub(link, text)


def complete(app: Any, docname: str, source: list[str]) -> None:
    """Put in what a page asks for: another file's text, the reference of a package."""
    page = DOCS / f"{docname}.md"
    if found := TEXT.search(source[0]):
        origin = ROOT / found[1]
        source[0] = relinked(origin.read_text(encoding="utf-8"), origin.parent, page)
    else:
        source[0] = relinked(source[0], page.parent, page)
    source[0] = MODULES.sub(lambda found: reference_of(found[1]), source[0])


def skip_alias(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out names of generic types, of which autodoc asks a signature that they lack."""
    return True if isinstance(obj, GenericAlias) else None


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write a formula in a line."""
    write_formula(translator, node, display="inline")


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own."""
    write_formula(translator, node, display="block")


def write_formula(translator: Any, node: nodes.Element, *, display: str) -> None:
    """Write a formula as MathML, which browsers draw themselves: no script, no font to fetch."""
    from latex2mathml.converter import convert

    translator.body.append(convert(node.astext(), display=display))
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Register what is of our own."""
    app.connect("source-read", complete)
    app.connect("autodoc-skip-member", skip_alias)
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
