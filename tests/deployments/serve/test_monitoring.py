"""The Grafana board: every metric and label that it names is one that the search page exports."""

import json
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from deployments.serve.metrics import Metrics

ROOT = Path(__file__).parents[3]
BOARD = json.loads((ROOT / "deployments/monitoring/search-page.json").read_text())
OF_PROMETHEUS = {"instance", "le"}
"""Labels that Prometheus adds, or a histogram has."""


def expressions():
    found = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    return [*found, *(variable["query"] for variable in BOARD["templating"]["list"])]


def exported():
    """Names of samples, and labels of each, of a server that answered once."""
    metrics = Metrics()
    metrics.requests.labels("/api/search", 200).inc()
    metrics.errors.labels("/api/search").inc()
    metrics.seconds.labels("/api/search").observe(0.1)
    families = text_string_to_metric_families(metrics.text().decode())
    samples = [sample for family in families for sample in family.samples]
    return {sample.name: {*sample.labels} | OF_PROMETHEUS for sample in samples}


def test_every_metric_of_the_board_is_exported_with_its_labels():
    known = exported()
    used = set()
    for expression in expressions():
        for name, labels in re.findall(r"(cppcl_\w+)(?:\{([^}]*)\})?", expression):
            assert name in known, expression
            used.add(name)
            assert {*re.findall(r"(\w+)=", labels)} <= known[name], expression
        for labels in re.findall(r" by \((\w+)\)", expression):
            assert any(labels in of for of in known.values()), expression
    shown = {re.sub(r"_(bucket|count|sum|total)$", "", name) for name in used}
    assert shown == {
        *("cppcl_requests", "cppcl_errors", "cppcl_request_seconds", "cppcl_requests_in_flight")
    }


def test_panels_lie_beside_each_other():
    taken = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
