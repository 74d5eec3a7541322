"""From a question in JSON to its answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from cppcl.errors import InputError
from cppcl.retrieval.settling import settled
from deployments.serve import interface as out
from deployments.serve.live import Live
from deployments.serve.served_model import NO_MARKS, Found, Marks, ServedModel
from deployments.serve.uploads import decode_base64, decode_photo, decode_upload
from tasks.words import Words


class ChangedError(InputError):
    """Rows are of a model that is not served any more."""


def answered(live: Live, body: bytes) -> out.Answer:
    """Search for what a request asks.

    Raises
    ------
    InputError
        It asks for nothing that can be done.
    """
    try:
        query = out.Query.model_validate_json(body)
    except ValidationError as error:
        raise InputError(error_text(error.errors(include_url=False))) from error
    model = live.get(query.model)
    if query.key is not None and query.key != model.reference.key:
        raise ChangedError(f"{model.name} was trained or indexed anew meanwhile; search again")
    words = Words(query.text, query.text_weight)
    marks = Marks(tuple(query.liked), tuple(query.disliked))
    # What falls a little behind the last place may keep its own.
    k = 2 * query.k if query.shown else query.k
    if query.picture is not None:
        read = decode_photo if query.photo else decode_upload
        picture = read(decode_base64(query.picture), longest_side=model.longest_side)
        found = model.by_picture(picture, k, marks, words)
    elif query.example is not None:
        found = model.by_example(query.example, k, marks, words)
    else:
        found = model.like(query.image or 0, k, marks, words)
    return answer_of(
        model,
        found,
        by_sketch=query.image is None and marks == NO_MARKS and not words,
        shown=query.shown,
        k=query.k,
    )


def answer_of(
    model: ServedModel, found: list[Found], *, by_sketch: bool, shown: Sequence[int], k: int
) -> out.Answer:
    """Answer as it is sent; what is close is known for sketches alone.

    Of what is found, nearest first, k pictures are sent; those that were shown before keep their
    places where they may.
    """
    key, threshold = model.reference.key, model.closeness.threshold
    close = None
    if by_sketch and threshold is not None:
        close = bool(found) and found[0].similarity >= threshold
    reason = None if found else "The model finds nothing in it that it knows: draw more."
    rows, similarities = [match.row for match in found], [match.similarity for match in found]
    matches = [
        out.MatchOut(
            rank=rank,
            row=rows[at],
            title=model.titles[rows[at]],
            label=model.labels[rows[at]],
            similarity=similarities[at],
            name=model.paths[rows[at]],
            thumbnail=f"/pictures/{key}/image/{rows[at]}",
            original=f"/originals/{key}/image/{rows[at]}",
        )
        for rank, at in enumerate(settled(rows, similarities, shown, k), start=1)
    ]
    return out.Answer(
        model=model.name,
        key=key,
        close=close,
        threshold=threshold if by_sketch else None,
        reason=reason,
        seconds=0.0,
        matches=matches,
    )


def describe_model(model: ServedModel) -> out.ModelOut:
    """A model as it is sent."""
    key, found = model.reference.key, model.closeness
    return out.ModelOut(
        name=model.name,
        key=key,
        n_pictures=model.n_pictures,
        licence=model.licence,
        takes_words=model.takes_words,
        look=out.LookOut(**vars(model.look)),
        closeness=out.ClosenessOut(
            threshold=found.threshold,
            n_right=found.n_right,
            n_wrong=found.n_wrong,
            right_kept=None if math.isnan(found.right_kept) else found.right_kept,
            wrong_refused=None if math.isnan(found.wrong_refused) else found.wrong_refused,
            n_unknown=found.n_unknown,
        ),
        examples=[
            out.ExampleOut(
                row=row,
                title=model.sketch(row).title,
                thumbnail=f"/pictures/{key}/sketch/{row}",
                original=f"/originals/{key}/sketch/{row}",
            )
            for row in model.examples
        ],
    )


def error_text(errors: Any) -> str:
    """What is wrong with a request, in a line."""
    parts = []
    for error in errors:
        place = ".".join(str(part) for part in error["loc"])
        message = error["msg"].removeprefix("Value error, ")  # pydantic's, of what we say
        parts.append(f"{place}: {message}" if place else message)
    return "; ".join(parts)[:500]
