"""Options of extractors: of registered ones, and of several that are combined by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    TypeAdapter,
    WrapValidator,
    create_model,
    model_validator,
)

from cppcl.features import EXTRACTORS, make_extractor
from cppcl.features.combination import SEPARATOR, WEIGHTS, part_names
from flows.configuration.options import (
    LEARNING,
    Options,
    PairOptions,
    RegisteredOptions,
    check_names_are_free,
    constructor_fields,
    may_learn,
    models_of,
    one_of,
)

WEIGHTS_FIELD = (
    tuple[float, ...] | None,
    Field(
        None,
        description="What the block of each part, brought to unit length, is multiplied by; null "
        "for 1 each",
    ),
)


@lru_cache
def combination_model(name: str) -> type[RegisteredOptions]:
    """Model of the options of a combination: those of each part under its name.

    Raises
    ------
    InputError
        A part is unknown or occurs twice.
    """
    names = part_names(name, EXTRACTORS)
    fields: dict[str, Any] = {
        "name": (Literal[name], Field(name, description="Extractors whose blocks are combined"))
    }
    for part in names:
        model = create_model(
            f"{part.title()}Part", __base__=Options, **constructor_fields(EXTRACTORS[part])
        )
        reader = BeforeValidator(lambda options: {} if options is None else options)
        field = Field(default_factory=model, description=f"Options of {part}")
        fields[part] = (Annotated[model, reader], field)
    fields[WEIGHTS] = WEIGHTS_FIELD
    if any(may_learn(EXTRACTORS[part]) for part in names):
        fields |= LEARNING

    def check_by_constructing(self: RegisteredOptions) -> RegisteredOptions:
        make_extractor(name, self.arguments())
        return self

    checks: dict[str, Any] = {"check": model_validator(mode="after")(check_by_constructing)}
    model = create_model(
        "Combination", __base__=RegisteredOptions, __validators__=checks, **fields
    )
    model.taken = frozenset([*names, WEIGHTS])
    return model


class OpenOptions(Options):
    """Options whose names are not all known."""

    model_config = ConfigDict(extra="allow")


CombinationOptions = create_model(
    "CombinationOptions",
    __base__=OpenOptions,
    __doc__="What a form shows of a combination; `combination_model` knows the parts of a name.",
    name=(
        str,
        Field(
            "A+B",
            pattern=r"\+",
            description="Several extractors as one, such as lks+cnn: their vectors side by side; "
            "the options of each stand under its name",
        ),
    ),
    **{WEIGHTS: WEIGHTS_FIELD},
    **LEARNING,
)


@lru_cache
def score_model(extractor: type[Options]) -> type[Options]:
    """Model of an extractor of curriculum scores, with the options of pairs as well."""
    check_names_are_free(extractor.__name__, extractor.model_fields, PairOptions.model_fields)
    bases: Any = (PairOptions, extractor)
    return create_model(f"{extractor.__name__}AsScore", __base__=bases)


MODELS = models_of(EXTRACTORS, discriminator="name")
Registered = one_of(MODELS, discriminator="name")
RegisteredScore = one_of([score_model(model) for model in MODELS], discriminator="name")
ADAPTER: TypeAdapter[RegisteredOptions] = TypeAdapter(Registered)
SCORE_ADAPTER: TypeAdapter[RegisteredOptions] = TypeAdapter(RegisteredScore)


def read_extractor(options: Any, *, score: bool = False) -> RegisteredOptions:
    """Options of an extractor, validated by the model that its name asks for.

    A score of a curriculum has those of its pairs beside them.
    """
    name = options.get("name") if isinstance(options, Mapping) else None
    if isinstance(name, str) and SEPARATOR in name:
        combined = combination_model(name)
        return (score_model(combined) if score else combined).model_validate(options)
    return (SCORE_ADAPTER if score else ADAPTER).validate_python(options)


ExtractorOptions = SerializeAsAny[
    Annotated[
        Registered | CombinationOptions, WrapValidator(lambda options, _: read_extractor(options))
    ]
]
"""Options of any extractor, or of a combination of some."""

ScoreOptions = SerializeAsAny[
    Annotated[
        RegisteredScore | score_model(CombinationOptions),
        WrapValidator(lambda options, _: read_extractor(options, score=True)),
    ]
]
"""Options of an extractor that scores for a curriculum, and of the pairs of its modality."""
