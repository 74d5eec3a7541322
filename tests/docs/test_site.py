"""The pages as they are built: without a warning, and asking no other machine for anything."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class Fetches(HTMLParser):
    """Addresses that a browser fetches to show a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get(FETCHED.get(tag, ""))
        if address:
            self.addresses.append(address)


def is_elsewhere(address: str) -> bool:
    return re.match(r"(?:\w+:)?//", address) is not None


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the pages, built as ``make docs`` does, without functions beside the pages."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"),
            *("-D", "toc_object_entries=0"),  # most of the time of writing
            *("-d", str(folder / "doctrees"), str(ROOT / "docs"), str(folder / "html")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder / "html"


def test_every_page_is_there(site):
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    assert len(pages) > 20
    assert all((site / page.with_suffix(".html")).is_file() for page in pages)


def test_the_reference_has_public_modules(site):
    page = (site / "api" / "optim.html").read_text()
    assert "cppcl.optim.pacing.step.update_pacing" in page
    assert "Parameters" in page


def test_formulas_are_drawn_by_the_browser(site):
    page = (site / "equations.html").read_text()
    assert page.count("<math") > 40
    assert "$" not in re.sub(r"(?s)<script.*?</script>", "", page)


def test_nothing_is_fetched_from_elsewhere(site):
    for path in site.rglob("*.html"):
        fetches = Fetches()
        fetches.feed(path.read_text())
        assert not [address for address in fetches.addresses if is_elsewhere(address)], path
    for path in site.rglob("*.css"):
        for address in re.findall(r"url\(['\"]?([^)'\"]+)", path.read_text()):
            assert address.startswith("data:") or not is_elsewhere(address), path
        assert "@import url(http" not in path.read_text(), path


def test_search_needs_no_server(site):
    assert (site / "searchindex.js").read_text().startswith("Search.setIndex(")


@pytest.mark.parametrize(
    ("address", "elsewhere"),
    [("https://a/b.js", True), ("//a/b.js", True), ("_static/b.js", False), ("/b.js", False)],
)
def test_addresses_of_other_machines_are_told(address, elsewhere):
    assert is_elsewhere(address) is elsewhere
