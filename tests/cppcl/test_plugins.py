"""Plugins: modules that are named or installed register features, methods and data sets."""

import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import cppcl.plugin_modules
from cppcl.baselines.canonical import RidgeCCA
from cppcl.datasets import DATASETS, Folder
from cppcl.errors import InputError
from cppcl.features import EXTRACTORS, Pixels, make_extractor
from cppcl.methods import METHODS, make_method
from cppcl.plugin_modules import load_plugins, name_plugins
from cppcl.plugins import register_data_set, register_features, register_method

FEATURE = """
from dataclasses import dataclass
from cppcl.features import Pixels
from cppcl.plugins import register_features

@dataclass(frozen=True, kw_only=True)
class Mine(Pixels):
    name = "mine"

register_features(Mine)
"""


@pytest.fixture(autouse=True)
def as_in_a_new_process(monkeypatch, tmp_path):
    """Nothing was loaded or closed; what is registered is forgotten."""
    before = [(registry, dict(registry)) for registry in (EXTRACTORS, METHODS, DATASETS)]
    monkeypatch.setattr(cppcl.plugin_modules, "_loaded", set())
    monkeypatch.setattr(cppcl.plugin_modules, "_closed_by", [])
    monkeypatch.setenv("CPPCL_PLUGINS", "")
    monkeypatch.chdir(tmp_path)
    modules = set(sys.modules)
    yield
    for name in set(sys.modules) - modules:
        if name.startswith("my_"):
            del sys.modules[name]
    for registry, content in before:
        registry.clear()
        registry.update(content)


def test_an_unknown_name_is_looked_for_in_plugins(tmp_path):
    Path("my_feature.py").write_text(FEATURE)
    with pytest.raises(InputError, match="no feature extractor of name 'mine'"):
        make_extractor("mine")
    name_plugins(["my_feature"])
    assert os.environ["CPPCL_PLUGINS"] == str(tmp_path / "my_feature.py")
    assert make_extractor("mine", {"size": (4, 4)}).dimension == 16
    assert make_extractor("hog+mine").dimension == make_extractor("hog").dimension + 1280


def test_entry_points_are_loaded(monkeypatch, tmp_path):
    package = tmp_path / "my_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "features.py").write_text(FEATURE)
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("mine", "my_package.features", "cppcl.plugins")
    monkeypatch.setattr(cppcl.plugin_modules, "entry_points", lambda group: [point])
    load_plugins()
    assert "mine" in EXTRACTORS
    (package / "broken.py").write_text("import nothing_of_that_name\n")
    point = EntryPoint("broken", "my_package.broken", "cppcl.plugins")
    with pytest.raises(InputError, match=r"'broken' \(my_package.broken\) cannot be loaded .*"):
        load_plugins()


def test_methods_and_data_sets_are_registered_by_name():
    class Mine(RidgeCCA):
        pass

    class MyFolder(Folder):
        name = "my_folder"

    register_method("mine", Mine)
    register_method("mine", Mine)  # as a notebook's cell is run again
    register_data_set(MyFolder)
    assert isinstance(make_method("mine", n_directions=3), Mine)
    assert DATASETS["my_folder"] is MyFolder


class Nothing:
    """Of no interface."""

    name = "nothing"


class Positional(Pixels):
    """Takes an option by its place."""

    name = "positional"

    def __init__(self, size: int) -> None:
        pass


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (lambda: register_features(Nothing), "Nothing has no version, device, dimension"),
        (lambda: register_data_set(Nothing), "Nothing has no version, has_pictures"),
        (lambda: register_method("nothing", Nothing), "Nothing has no version, fit"),
        (lambda: register_features(Positional), "option 'size' of .* must be keyword only"),
        (lambda: register_features(Pixels()), "is no class"),
        (lambda: register_method("a+b", RidgeCCA), r"has the name 'a\+b'"),
        (lambda: register_method("cprl", RidgeCCA), "there is a method 'cprl' already, cppcl"),
    ],
)
def test_what_cannot_be_registered_is_named(register, message):
    with pytest.raises(InputError, match=message):
        register()


def test_nothing_is_registered_after_experiments_were_read():
    cppcl.plugin_modules.close_registries("the configuration of experiments")
    with pytest.raises(InputError, match=r"method 'mine' is registered after the configuration"):
        register_method("mine", RidgeCCA)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("my_absent", None, "'my_absent' is neither a module that can be imported nor a file"),
        ("my_absent.py", None, "'my_absent.py' is neither"),
        ("a..b", None, "'a..b' is neither"),
        ("my_broken", "1 / 0", r"cannot be loaded \(my_broken.py, line 1\): ZeroDivisionError"),
        ("my_wrong", "def", r"cannot be loaded \(my_wrong.py, line 1\): SyntaxError"),
        ("my_exit", "raise SystemExit(3)", r"cannot be loaded \(my_exit.py, line 1\): SystemExit"),
        ("this.py", "", "an installed module is called 'this'"),
        ("cycler.py", "", "an installed module is called 'cycler'|another module is called"),
        ("m" * 300, None, "is neither"),
        ("json.py", "", "another module is called 'json'"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_named(name, content, message):
    if content is not None:
        Path(name.removesuffix(".py") + ".py").write_text(content)

    def load():
        name_plugins([name])
        load_plugins()

    with pytest.raises(InputError, match=message):
        load()
    with pytest.raises(InputError, match=message):  # it is not forgotten that it failed
        load()


def test_a_path_that_would_be_parted_is_refused(tmp_path):
    folder = tmp_path / f"a{os.pathsep}b"
    folder.mkdir()
    (folder / "my_feature.py").write_text(FEATURE)
    with pytest.raises(InputError, match="in its path, which parts the names"):
        name_plugins([str(folder / "my_feature.py")])


def test_the_command_line_takes_plugins_at_any_place(tmp_path):
    Path("my_feature.py").write_text(FEATURE)
    words = ["features", "show", "mine", "absent.png"]
    for given in (["--plugin", "my_feature", *words], [*words, "--plugin=my_feature.py"]):
        done = subprocess.run(
            [sys.executable, "-m", "deployments.cli", *given],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        assert "absent.png" in done.stderr  # and not the feature
        assert "mine" not in done.stderr
    done = subprocess.run(
        [sys.executable, "-m", "deployments.cli", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert "'mine'" in done.stderr
