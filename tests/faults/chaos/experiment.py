"""The experiment whose runs are disturbed, and what must come of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
import conftest  # noqa: E402  sets what Prefect reads when it is imported

__all__ = ["ROOT", "conftest", "draw_pictures", "manifests", "unlike_expected", "write_experiment"]


def draw_pictures(folder: Path) -> None:
    """Draw 12 sketches and as many images."""
    for kind, shape in enumerate(conftest.SHAPES):
        for number in range(4):
            for side in ("sketches", "images"):
                path = folder / "shapes" / side / shape / f"{number}.png"
                conftest.draw(path, shape, 10 * number + kind, filled=side == "images")


def write_experiment(folder: Path, cluster: str) -> Path:
    """One protocol, one split, one method with a search, and curricula."""
    configuration = conftest.tiny_experiment(folder / "shapes", cluster)
    instance = configuration["protocols"]["instance"]
    instance["split"]["seeds"] = [0]
    cprl = instance["methods"]["cprl"]
    instance["methods"] = {"cprl": cprl | {"tune": {"alpha": [0.01, 0.02]}}}
    configuration["protocols"] = {"instance": instance}
    configuration["compute"] = {"cluster": cluster, "workers": 1}
    file = folder / f"tiny-{cluster.rpartition(':')[2]}.yaml"
    file.write_text(yaml.safe_dump(configuration))
    return file


def manifests(place: Path) -> dict[str, Any]:
    """Manifests of what is published, by folder; of a report, which tells times, its recipe."""
    store = place / "store"
    found = {}
    for path in store.glob("*/*/manifest.json"):
        if "." not in path.parent.name:
            manifest = json.loads(path.read_bytes())
            if path.parts[-3] == "report":
                del manifest["files"], manifest["sha256"]
            found["/".join(path.parts[-3:-1])] = manifest
    return found


def unlike_expected(place: Path, expected: dict[str, Any], *, partly: bool = False) -> list[str]:
    """What is stored and should not be, or, unless `partly`, the other way round."""
    from storage import Store

    found = manifests(place)
    wrong = [str(problem) for problem in Store(place / "store").verify()]
    wrong += [f"{name} is another one" for name in found if found[name] != expected.get(name)]
    if not partly:
        wrong += [f"{name} is missing" for name in expected.keys() - found.keys()]
        wrong += [f"{path} is left" for path in (place / "store").glob("*/*.partial")]
    return wrong
