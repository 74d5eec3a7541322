"""What workers give back that is wrong: named with its block and pictures, and not stored."""

import pickle
from typing import Any

import numpy as np
import pytest

from cppcl.baselines.direct import RawCosine
from cppcl.errors import CppclError, TooManyBadPicturesError
from cppcl.features import Pixels
from storage import StoreError
from tasks.samples import usable_rows
from tasks.stages.encode import check_codes
from tasks.workers.foreign import call_named

TRANSFORM = Pixels.transform
SECOND = r"block 1 \(sketches/square/1\.png, sketches/square/2\.png, .* and 2 more\): "
WRONG_ROWS = {
    "a row too few": lambda rows: rows[1:],
    "too narrow": lambda rows: rows[:, 1:],
    "one number a picture": lambda rows: rows[:, :1],
    "one dimension": lambda rows: rows[:, 0],
    "double precision": lambda rows: rows.astype(np.float64),
    "text": lambda rows: rows.astype(str),
    "objects": lambda rows: rows.astype(object),
    "complex": lambda rows: rows.astype(complex),
    "a list": lambda rows: rows.tolist(),
    "nothing": lambda rows: None,
}


class UnsendableError(Exception):
    """Holds what cannot be pickled, and fails when it is printed."""

    def __init__(self) -> None:
        super().__init__()
        self.held = lambda: None

    def __str__(self) -> str:
        raise RuntimeError("no words")


def fail(rows: Any) -> Any:
    raise UnsendableError


def spoil_second_block(monkeypatch: pytest.MonkeyPatch, spoil: Any) -> None:
    """Let `pixels` return what `spoil` makes of the rows of the second block."""
    calls: list[int] = []

    def transform(self: Pixels, pictures: Any) -> Any:
        calls.append(len(pictures))
        rows = TRANSFORM(self, pictures)
        return spoil(rows) if len(calls) == 2 else rows

    monkeypatch.setattr(Pixels, "transform", transform)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        *(
            (spoil, "features 'pixels': transform returned .*, not 5 x 64 float32")
            for spoil in WRONG_ROWS.values()
        ),
        (fail, "features 'pixels' failed .*test_garbage.py, line .*UnsendableError"),
    ],
    ids=[*WRONG_ROWS, "an error that cannot be sent"],
)
def test_wrong_rows_are_named_and_not_stored(
    spoil, message, extract_folder, workspace, inline_blocks, monkeypatch
):
    with monkeypatch.context() as patch:
        spoil_second_block(patch, spoil)
        with pytest.raises(CppclError, match=SECOND + message) as caught:
            extract_folder(block_rows=5)
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args
    assert list(workspace.store.references("extract")) == []
    mended = extract_folder(block_rows=5)
    assert len(inline_blocks) == 5 + 5 + 7  # the first block was kept
    assert mended.manifest == extract_folder(block_rows=5).manifest
    assert mended.array("features").any(axis=1).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_their_pictures_fault(
    value, extract_folder, workspace, inline_blocks, monkeypatch
):
    def spoil(rows: Any) -> Any:
        rows[2, 7] = value
        return rows

    spoil_second_block(monkeypatch, spoil)
    with pytest.raises(TooManyBadPicturesError, match=r"square/3\.png: pixels gives values that"):
        extract_folder(block_rows=5, max_bad_share=0)
    artifact = extract_folder(block_rows=5)
    assert np.flatnonzero(~usable_rows(artifact)).tolist() == [7]
    assert not artifact.array("features")[7].any()


@pytest.mark.flow
def test_an_error_of_a_worker_that_cannot_be_sent_is_told(dask_cluster, workspace, extract_folder):
    from distributed import WorkerPlugin

    class Spoil(WorkerPlugin):
        """Sent by value: the class of the error is made on the worker, and known there alone."""

        name = "spoil"

        def setup(self, worker: Any) -> None:
            from cppcl.features import Pixels

            self.before = Pixels.transform

            class HereAloneError(Exception):
                pass

            def transform(self: Pixels, pictures: Any) -> Any:
                error = HereAloneError("out of tune")
                error.held = (number for number in range(3))  # type: ignore[attr-defined]
                raise error

            Pixels.transform = transform  # type: ignore[method-assign]

        def teardown(self, worker: Any) -> None:
            from cppcl.features import Pixels

            Pixels.transform = self.before  # type: ignore[method-assign]

    client = dask_cluster.client()
    client.register_plugin(Spoil())
    try:
        with pytest.raises(
            CppclError, match=r"block \d \(sketches/.*features 'pixels' failed.*out of tune"
        ):
            extract_folder()
    finally:
        client.unregister_worker_plugin("spoil")
    assert list(workspace.store.references("extract")) == []
    assert usable_rows(extract_folder()).all()


@pytest.mark.parametrize(
    "error",
    [CppclError("ours"), StoreError("ours"), OSError("full"), MemoryError(), ImportError()],
)
def test_errors_on_purpose_and_of_the_machine_pass(error):
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        call_named("training", fail)
    assert caught.value is error


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (None, "NoneType, not a matrix of 3 rows"),
        (np.ones(3), r"\(3,\), not a matrix"),
        (np.ones((2, 4)), r"\(2, 4\), not a matrix of 3 rows"),
        (np.ones((3, 4), int), "int64, not floating"),
        (np.array([[1.0], [np.nan], [np.inf]]), "2 of 3 values are not finite"),
    ],
    ids=str,
)
def test_codes_that_are_none_are_refused(codes, message):
    with pytest.raises(CppclError, match="sketch codes.* " + message):
        check_codes(codes, 3, "sketch codes")


def test_codes_of_a_method_that_fails_are_not_stored(stages, workspace, monkeypatch):
    model = stages.train("raw_cosine", {}, None)
    encode = RawCosine.encode_images

    def spoil(self: RawCosine, features: Any) -> Any:
        return encode(self, features) * np.float32(np.nan)

    monkeypatch.setattr(RawCosine, "encode_images", spoil)
    with pytest.raises(CppclError, match=r"image codes: .* values are not finite"):
        stages.encode(model)
    assert list(workspace.store.references("encode")) == []


def test_what_cannot_be_learned_is_named(monkeypatch, stages):
    monkeypatch.setattr(RawCosine, "fit", lambda self, *given: 1 / 0)
    with pytest.raises(CppclError, match=r"raw_cosine: training failed .*ZeroDivisionError"):
        stages.train("raw_cosine", {}, None)
