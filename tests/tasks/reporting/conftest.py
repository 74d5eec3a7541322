"""Stages that the tests of a module share: what they add to the store changes nothing there."""

import pytest

from tasks.workspace import Workspace
from tests.tasks.conftest import Stages


@pytest.fixture(scope="module")
def stages(tmp_path_factory, draw_pictures, inline_blocks_of_module) -> Stages:
    folder = tmp_path_factory.mktemp("stages")
    return Stages(Workspace(folder / "workspace"), draw_pictures(folder / "shapes"))
