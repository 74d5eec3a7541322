"""What is released: a wheel, by way of the source distribution, that works without the clone."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PACKAGES = ("cppcl", "storage", "tasks", "flows", "deployments")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FILES = ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "CITATION.cff", "Makefile")
MORE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "SUPPORT.md", "constraints.txt")
NOT_IN_WHEELS = ("deployments/container", "deployments/systemd")


@dataclass(frozen=True)
class Release:
    """The two files, and what is in them."""

    sdist: Path
    wheel: Path

    def wheel_names(self) -> set[str]:
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())

    def sdist_names(self) -> set[str]:
        with tarfile.open(self.sdist) as archive:
            return {name.partition("/")[2] for name in archive.getnames()}

    def metadata(self) -> Any:
        (name,) = (n for n in self.wheel_names() if n.endswith(".dist-info/METADATA"))
        with zipfile.ZipFile(self.wheel) as archive:
            return Parser().parsestr(archive.read(name).decode())


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    # A copy, since building leaves folders beside the code.
    source = tmp_path_factory.mktemp("source")
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in (*FILES, *MORE):
        shutil.copy(ROOT / name, source)
    output = tmp_path_factory.mktemp("dist")
    built = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", output, source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (sdist,), (wheel,) = output.glob("*.tar.gz"), output.glob("*.whl")
    return Release(sdist, wheel)


@pytest.fixture(scope="module")
def installed(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Commands of a new environment that holds the wheel, and finds what it needs in this one."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "install", "--quiet", "--no-deps", "--no-index", release.wheel], check=True
    )
    (site,) = folder.glob("lib/python*/site-packages")
    # Paths alone: a .pth file there, such as that of an editable install, is not read.
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


def run(installed: Path, tmp_path: Path, *words: object) -> str:
    """Output of a command of that environment, in an empty folder."""
    done = subprocess.run(
        [installed / str(words[0]), *map(str, words[1:])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(installed), "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_version_stands_in_one_place(release: Release) -> None:
    version = PROJECT["version"]
    assert release.metadata()["Version"] == version
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            assert f'"{version}"' not in file.read_text(), file
    assert "version" not in yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_terms_come_along(release: Release) -> None:
    metadata = release.metadata()
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert any(name.endswith("/licenses/LICENSE") for name in release.wheel_names())
    assert {*MORE, "LICENSE", "CITATION.cff"} <= release.sdist_names()


def test_every_file_of_the_packages_is_in_the_wheel(release: Release) -> None:
    names = release.wheel_names()
    wanted = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    wanted = {name for name in wanted if not name.startswith(NOT_IN_WHEELS)}
    assert wanted <= names, sorted(wanted - names)
    assert not [name for name in names if name.startswith("tests/")]
    assert "deployments/systemd/cppcl-worker.service" in release.sdist_names()


def test_types_are_shipped_for_what_is_checked_strictly(release: Release) -> None:
    checked = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["packages"]
    assert {f"{package}/py.typed" for package in checked} <= release.wheel_names()


def test_the_wheel_works_alone(installed: Path, tmp_path: Path) -> None:
    where = run(installed, tmp_path, "python", "-c", "import cppcl; print(cppcl.__file__)")
    assert Path(where.strip()).is_relative_to(installed.parent)
    assert run(installed, tmp_path, "cppcl", "--version") == f"cppcl {PROJECT['version']}\n"
    assert "find the pictures that a sketch means" in run(installed, tmp_path, "cppcl", "--help")
    assert "n_atoms" in run(installed, tmp_path, "cppcl", "options", "emoji")


def test_the_citation_names_software_and_paper() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert citation["title"] == PROJECT["name"]
    assert citation["license"] == PROJECT["license"]
    paper = citation["preferred-citation"]
    assert " ".join(paper["title"].split()) in " ".join((ROOT / "README.md").read_text().split())
    assert [author["family-names"] for author in paper["authors"]] == [
        *("Xu", "Alameda-Pineda", "Song", "Ricci", "Sebe")
    ]


def test_the_versions_that_were_tested_are_among_those_allowed():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    versions = dict(line.split("==") for line in lines if not line.startswith("#"))
    extras = PROJECT["optional-dependencies"]
    asked = [*PROJECT["dependencies"], *extras["demo"], *extras["dev"]]
    needs = [Requirement(text) for text in asked]
    wrong = [
        str(need)
        for need in needs
        if need.name != "cppcl"
        and not need.specifier.contains(versions[canonicalize_name(need.name)])
    ]
    assert wrong == []
