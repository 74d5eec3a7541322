"""A small audit, its file of verdicts and its session."""

from __future__ import annotations

import hashlib

import pytest

from cppcl.audit.suspects import Suspect
from deployments.audit.database import VerdictDatabase
from deployments.audit.session import AuditSession
from tasks.audit import Audit, AuditedSample


@pytest.fixture
def audit(tmp_path, draw_pictures):
    """Labels of two sketches and two images, of which the last is not asked about."""
    root = draw_pictures(tmp_path / "shapes", per_class=1)

    def samples(modality, folder):
        found = []
        for label in ("circle", "square"):
            path = f"{folder}/{label}/0.png"
            digest = hashlib.sha256((root / path).read_bytes()).hexdigest()
            found.append(AuditedSample(path.removesuffix(".png"), modality, label, path, digest))
        return tuple(found)

    return Audit(
        experiment="shapes",
        protocol="category",
        kind="labels",
        root=root,
        samples={"sketch": samples("sketch", "sketches"), "image": samples("image", "images")},
        suspects=(
            Suspect(0, None, "circle", "square", -4.0, 0.9),
            Suspect(None, 1, "square", "", -3.0, 0.6),
            Suspect(1, None, "square", "", -1.0, 0.1),
        ),
        wrong_share=0.5,
        typical={"sketch": {"circle": 0}, "image": {"circle": 0, "square": 1}},
    )


@pytest.fixture
def verdicts(tmp_path):
    made = VerdictDatabase(tmp_path / "audits" / "shapes.sqlite", "shapes")
    yield made
    made.close()


@pytest.fixture
def audit_session(audit, verdicts):
    return AuditSession(audit, verdicts, 2)
