"""From checked training data to what CPRL learns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.base import Curriculum
from cppcl.errors import InputError
from cppcl.learning.affinity import within_weights
from cppcl.learning.fitted import Learned
from cppcl.learning.graph import Laplacian
from cppcl.learning.preparation import Preparation
from cppcl.learning.rounds import Round, digest_of, resume, tell_rounds
from cppcl.learning.soft_links import group_codes, linear_prediction, soft_targets
from cppcl.learning.training_data import SIDES, TrainingData
from cppcl.optim.alternation import Training
from cppcl.optim.codes import encode
from cppcl.optim.initialization import initial_dictionaries
from cppcl.validation import Floating

if TYPE_CHECKING:
    from cppcl.learning.cprl import CPRL

Pair = tuple[Floating, Floating]
Curricula = Literal["both", "sketch", "image"]
"""Which modalities' curricula take part."""


def learn(
    model: CPRL,
    data: TrainingData,
    *,
    start: CPRL | None = None,
    callback: Callable[[Round], object] | None = None,
    resume_from: Mapping[str, Any] | None = None,
) -> Learned:
    """Prepare features, initialise and train with the options of a model; see its `fit`."""
    check_atoms_fit(model.n_atoms, data.dtype)
    if model.soft_links and model.link_model == "groups":
        if not data.labelled:
            raise InputError(
                f"soft_links={model.soft_links} needs sketch_labels and image_labels, also where "
                "links are given: new samples are linked to groups; or use link_model='linear', "
                "or soft_links=0"
            )
        if not np.intersect1d(*data.labels).size:
            raise InputError(
                f"soft_links={model.soft_links}: no label occurs in both sketch_labels and "
                "image_labels, so there is no group to link new samples to; use soft_links=0"
            )
    preparations = {side: model.make_preparation() for side in SIDES}
    sketches, images = (
        prepared(preparations[side], F, f"{side}_features")
        for side, F in zip(SIDES, data.features, strict=True)
    )
    features = sketches, images
    laplacian = data.laplacian(model.normalize, within(model, data, features))
    rng = np.random.default_rng(model.seed)
    if resume_from is not None:
        dictionaries = [np.zeros((model.n_atoms, F.shape[1]), dtype=F.dtype) for F in features]
    elif start is not None:
        dictionaries = dictionaries_of(start, model, features)
    else:
        dictionaries = initialised(model, features, laplacian, rng)
    training = Training(
        features,
        dictionaries,
        laplacian,
        data.group_scale(model.group_scale),
        chosen_curricula(model.curricula, data),
        model.training_options(),
    )

    @cache
    def fingerprint() -> bytes:
        options = repr((model.version, sorted(model.get_params().items())))
        first = [] if start is None else [start.sketch_dictionary_, start.image_dictionary_]
        return digest_of(data.digest(), options.encode(), *(D.tobytes() for D in first))

    if resume_from is not None:
        resume(training, resume_from, fingerprint())
    history = training.run(rng, callback and tell_rounds(callback, fingerprint))
    return Learned(arrays_of(model, training, data.labels), preparations, history)


def chosen_curricula(
    chosen: Curricula, data: TrainingData
) -> tuple[Curriculum | None, Curriculum | None]:
    """Curricula of the sketches and of the images, None where one does not take part."""
    sketches, images = (
        curriculum if chosen in ("both", side) else None
        for side, curriculum in zip(SIDES, data.curricula, strict=True)
    )
    return sketches, images


def check_atoms_fit(n_atoms: int, dtype: np.dtype[Any]) -> None:
    """Refuse more atoms than memory can compare with each other.

    Raises
    ------
    InputError
        If the matrices of inner products would take more than half of the free memory.
    """
    import psutil

    needed = 3 * n_atoms**2 * dtype.itemsize
    free = psutil.virtual_memory().available
    if needed > free / 2:
        raise InputError(
            f"n_atoms={n_atoms} needs {needed / 1e9:.0f} GB for the inner products of atoms, and "
            f"{free / 1e9:.0f} GB are free; use fewer atoms (the paper takes 50 to 1,500)"
        )


def prepared(preparation: Preparation, features: Floating, name: str) -> Floating:
    """Fit a preparation and apply it; refuse rows that it leaves without direction."""
    matrix = preparation.fit_transform(features, name=name)
    if not matrix.any():
        raise InputError(
            f"{name}: all {len(features)} rows are alike, so nothing tells samples apart; give "
            "features that differ"
        )
    return matrix


def within(model: CPRL, data: TrainingData, features: Pair) -> list[Any]:
    """Weights within either modality."""
    options: dict[str, Any] = {"n_neighbors": model.n_neighbors, "sigma": model.sigma}
    return [
        within_weights(F, labels, model.within, **options)
        for F, labels in zip(features, data.labels, strict=True)
    ]


def initialised(
    model: CPRL, features: Pair, laplacian: Laplacian, rng: np.random.Generator
) -> list[NDArray[Any]]:
    """Dictionaries before the first round."""
    return initial_dictionaries(
        features,
        laplacian,
        model.n_atoms,
        alpha=model.alpha,
        initialization=model.initialization,
        start=model.atom_start,
        n_rounds=model.n_initial_rounds,
        rng=rng,
        code_solver=model.code_solver,
        device=model.device,
    )


def dictionaries_of(start: CPRL, model: CPRL, features: Pair) -> list[NDArray[Any]]:
    """Dictionaries of another model, if they are of the same atoms and features.

    Raises
    ------
    InputError
        If it has other options or widths.
    """
    for name in ("n_atoms", *Preparation.option_names()):
        here, there = getattr(model, name), getattr(start, name)
        if here != there:
            raise InputError(f"start has {name}={there!r}, but this model {name}={here!r}")
    dictionaries = [start.sketch_dictionary_, start.image_dictionary_]
    for side, F, D in zip(SIDES, features, dictionaries, strict=True):
        if D.shape[1] != F.shape[1]:
            raise InputError(
                f"start has {side} atoms of {D.shape[1]} entries, but the prepared "
                f"{side}_features have {F.shape[1]} columns; fit it on the same features"
            )
    return [D.astype(F.dtype) for F, D in zip(features, dictionaries, strict=True)]


def code_samples(
    model: CPRL, prepared: Floating, side: str, learned: Mapping[str, NDArray[Any]] | Learned
) -> Floating:
    """Codes (n, n_atoms) of new samples, prepared, by what was learned; not yet centred."""
    D = learned[f"{side}_dictionary"]
    codes = encode(prepared, D, model.alpha, ridge=model.code_ridge).codes
    if model.soft_links:
        if model.link_model == "linear":
            target = codes @ learned["code_prediction"]
        else:
            other = "image" if side == "sketch" else "sketch"
            own, partner = (learned[f"{name}_group_codes"] for name in (side, other))
            target = soft_targets(codes, own, partner, model.link_temperature)
        codes = encode(prepared, D, model.alpha, ridge=model.soft_links, target=target).codes
    return codes


def arrays_of(
    model: CPRL, training: Training, labels: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> dict[str, NDArray[Any]]:
    """What is kept of a training."""
    arrays: dict[str, NDArray[Any]] = {}
    for side, D, rows in zip(SIDES, training.dictionaries, training.rows, strict=True):
        arrays[f"{side}_dictionary"] = D
        arrays[f"{side}_pacing"] = training.v[rows]
        arrays[f"{side}_pacing_rounds"] = training.v_of_rounds()[:, rows]
    sides = list(zip(SIDES, training.features, training.dictionaries, strict=True))
    if model.soft_links:
        codes = [encode(F, D, model.alpha, ridge=model.code_ridge).codes for _, F, D in sides]
        if model.link_model == "linear":
            stacked = np.concatenate(codes)
            arrays["code_prediction"] = linear_prediction(stacked, training.laplacian)
        else:
            means = group_codes((codes[0], codes[1]), labels)
            arrays |= {f"{side}_group_codes": m for side, m in zip(SIDES, means, strict=True)}
    if model.center_codes:
        for side, F, _ in sides:
            mean = code_samples(model, F, side, arrays).mean(axis=0, dtype=np.float64)
            arrays[f"{side}_code_mean"] = mean.astype(F.dtype)
    return arrays
