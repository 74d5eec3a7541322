from dataclasses import replace

import numpy as np
import pytest

from cppcl.report import (
    MethodResult,
    ProtocolResult,
    PublishedScores,
    QueryResult,
    ReportData,
    ResultGrid,
    RetrievedPicture,
    StageTime,
    render_report,
)
from cppcl.retrieval.metrics import evaluate

METHODS = {"raw cosine": 1.6, "centred cosine": 1.35, "ridge CCA": 1.1, "CPRL, pacing B": 1.0}
PUBLISHED = PublishedScores(
    source="Table 1 of a publication",
    score="rank_5",
    values={"CPRL, pacing B": 0.8125, "raw cosine": 0.99},
    trials=2,
    titles={"CPRL, pacing B": "CPRL, B (μ = 0)"},
)
LABELS = ["horse", "dog face", "hot beverage", "rocket", "cherry blossom", "old key", "umbrella"]


def drawing(random, sketch):
    """Lines on white for a sketch; a shaded coloured scene for a picture."""
    from PIL import Image, ImageDraw

    width, height = (96, 96) if sketch else (160, 120)
    picture = Image.new("RGB", (width, height), "white")
    pen = ImageDraw.Draw(picture)
    for _ in range(7):
        points = [tuple(point) for point in random.integers(8, height - 8, (3, 2)).tolist()]
        if sketch:
            pen.line(points, fill="black", width=3)
        else:
            pen.polygon(points, fill=tuple(random.integers(0, 256, 3).tolist()))
    array = np.array(picture)
    if not sketch:  # the noise of a photograph, which compresses badly
        shade = random.integers(-25, 25, array.shape)
        array = np.clip(array + shade, 0, 255).astype(np.uint8)
    return array


def make_grid(seed, n_queries=8):
    random = np.random.default_rng(seed)
    queries = []
    for number in range(n_queries):
        label = LABELS[number % len(LABELS)]
        found = []
        for similarity in np.sort(random.uniform(0.2, 0.95, 5))[::-1]:
            correct = bool(random.random() < 0.45)
            wrong = LABELS[(number + random.integers(1, 7)) % 7]
            name = label if correct else wrong
            found.append(
                RetrievedPicture(drawing(random, sketch=False), name, correct, float(similarity))
            )
        queries.append(QueryResult(drawing(random, sketch=True), label, found))
    return ResultGrid("CPRL, pacing B", 0, queries)


def make_protocol(name, main_score, n_classes, seed, published=None):
    random = np.random.default_rng(seed)
    labels = np.arange(200) % n_classes
    methods = {}
    for method, noise in METHODS.items():
        evaluations = []
        for _ in range(3):
            centres = random.standard_normal((n_classes, 6))
            sketches, images = (
                centres[labels] + noise * random.standard_normal((200, 6)) for _ in range(2)
            )
            sketches[:2] = 0
            evaluations.append(evaluate(sketches, images, labels, labels))
        iterations = np.arange(1, 13)
        history = {
            "objective": 100 * np.exp(-iterations / 4) + 30 + random.standard_normal(12),
            "gamma": 0.5 * 1.3**iterations,
            "mean v/sketch": 1 - np.exp(-iterations / 4),
            "mean v/image": 1 - np.exp(-iterations / 6),
        }
        methods[method] = MethodResult.from_evaluations(
            evaluations,
            history if method.startswith("CPRL") else None,
            queries=[np.arange(200)] * 3,
        )
    return ProtocolResult(
        name=name,
        description="Each sketch of an unseen concept asks for the picture of the same concept.",
        chance=evaluations[0].chance,
        methods=methods,
        main_score=main_score,
        grid=make_grid(seed),
        published=published,
    )


def make_data(**changes):
    data = {
        "experiment": "emoji",
        "configuration": {
            "experiment": "emoji",
            "features": {"sketch": "cnn", "image": "cnn", "size": 224},
            "learner": {"n_atoms": 100, "alpha": 0.003, "beta": 0.1, "pacing": "B"},
            "splits": [0, 1, 2],
        },
        "protocols": [
            make_protocol("instance", "rank_1", 200, 1),
            make_protocol("category", "map", 10, 2, PUBLISHED),
        ],
        "stages": [
            StageTime("fetch", 3.2, True),
            StageTime("extract", 81.5, False),
            StageTime("train", 44.25, False),
        ],
        "licences": [
            "Line drawings: OpenMoji, CC BY-SA 4.0, https://openmoji.org",
            "Pictures: Twemoji, CC BY 4.0, https://github.com/jdecked/twemoji",
        ],
        "findings": ["Classes on one side only: zebra (3 sketches)."],
        "skipped": [("sketches/cat/broken one.png", "truncated file")],
        "versions": {"numpy": "2.4.6", "torch": "2.14.1"},
        "created": "2026-01-02 03:04 UTC",
    }
    return ReportData(**data | changes)


@pytest.fixture(scope="session")
def data():
    return make_data()


@pytest.fixture(scope="session")
def build():
    """Make report data with some fields changed."""
    return make_data


@pytest.fixture(scope="session")
def files(data):
    """The report of these data."""
    return render_report(data)


@pytest.fixture(scope="session")
def bare(data):
    """Two protocols of one method each, without pictures: soon rendered."""
    first = dict(list(data.protocols[0].methods.items())[:1])
    return [
        replace(protocol, methods=first, grid=None, published=None) for protocol in data.protocols
    ]


@pytest.fixture(scope="session")
def protocol(data):
    return data.protocols[1]
