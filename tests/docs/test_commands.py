"""The page of names has every command, experiment, extractor and method."""

from pathlib import Path

import pytest

from cppcl.features import EXTRACTORS
from cppcl.methods import METHODS
from deployments.cli import COMMANDS
from flows.configuration.load import packaged_experiments

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()


@pytest.mark.parametrize("name", [*EXTRACTORS, *METHODS, *packaged_experiments()])
def test_a_name_is_there(name):
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_there(command):
    assert f"\ncppcl {command} " in PAGE
