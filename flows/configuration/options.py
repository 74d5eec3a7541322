"""Typed option models, derived from the constructors of registered classes.

A feature, data set or method is added by one file and one registry line: what its constructor
takes becomes what a YAML file, the command line and the Prefect form accept, and what it refuses
is refused before anything runs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, is_dataclass
from functools import cache, reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    create_model,
    model_validator,
)

from cppcl.features import make_extractor
from cppcl.features.learning import LearningExtractor
from cppcl.learning.composition import COMPOSITION, Composition
from cppcl.learning.estimator import Estimator
from cppcl.methods import constructed
from cppcl.modality import Modality
from cppcl.retrieval.exact import Metric
from cppcl.validation import suggestion
from flows.configuration.grids import Grid, check_grid, grid_reader, unknown_option
from flows.configuration.yaml_text import SHORT
from tasks.cluster.kinds import KINDS

GRID = "tune"
"""Field of a method that holds its grid."""
ITQ = "itq_bits"
"""Field of a method whose codes are made binary."""

COMPARED: dict[str, Any] = {
    "features": (
        str | None,
        Field(None, description="Pair of more_features that it learns from; the main one if none"),
    ),
    "metric": (
        Metric | None,
        Field(None, description="Similarity of its codes; that of the evaluation if none"),
    ),
    "answers": (
        bool,
        Field(True, description="Whether it may answer searches, where tuning.choose is set"),
    ),
    ITQ: (
        Annotated[int, Field(ge=1)] | None,
        Field(
            None,
            description="Score binary codes of so many bits that iterative quantisation makes of "
            "its codes; searches are answered by the codes themselves",
        ),
    ),
    "only_right": (
        bool,
        Field(
            False,
            description="Train without the samples that split.noise made wrong: the most that "
            "finding them could bring",
        ),
    ),
}
"""Fields of a method, beside the arguments of its constructor and its grid."""

LEARN_FROM = "learn_from"
LEARNING: dict[str, Any] = {
    LEARN_FROM: (
        Literal["sketch", "image"],
        Field(
            "sketch",
            description="Whose extractor learns, with its options and from its training pictures, "
            "what this one describes by; unused where it learns from both at once",
        ),
    ),
    "learned": (
        str | None,
        Field(
            None,
            description="Key of an artifact of the stage learn to use instead, in all splits "
            "(cppcl store ls learn)",
        ),
    ),
}
"""Fields of a class that may learn, beside the arguments of its constructor."""


def check_name(name: str) -> str:
    """Refuse names that tables, files and dotted keys could not hold."""
    if not re.fullmatch(r"\w[\w +-]{0,39}", name) or name == "chance":
        raise ValueError(
            f"name {name!r} must be at most 40 letters, digits, '_', '-', '+' or spaces, begin "
            "with a letter or digit, and not be 'chance', the name of the level of chance"
        )
    return name


LEAST_MEMORY = 256 * 2**20
"""Memory below which a worker does not even start, in bytes."""


def check_size(size: str) -> str:
    """Refuse an amount of memory that is malformed or too small for a worker."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt])(i?)b\s*", size.lower())
    if not match:
        raise ValueError(f"size {size!r} must be a number and a unit, such as '3GiB' or '800MB'")
    number, prefix, binary = match.groups()
    n_bytes = float(number) * (1024 if binary else 1000) ** ("kmgt".index(prefix) + 1)
    if n_bytes < LEAST_MEMORY:
        raise ValueError(f"size {size!r} is less than a worker needs to start, 256MiB")
    return size


SCHEMES = ("tcp://", "tls://", "ssh://")


def is_place(text: str) -> bool:
    """True for ``[user@]host[:port]``."""
    place = re.fullmatch(r"(?:[^@\s]+@)?(?:\[[0-9A-Fa-f:]+\]|[^:,@\s]+)(?::(\d+))?", text.strip())
    return place is not None and int(place[1] or 1) in range(1, 65536)


def check_cluster(where: str) -> str:
    """Refuse what is neither a kind of cluster nor an address of one."""
    if where in KINDS:
        return where
    scheme, _, places = where.partition("//")
    if f"{scheme}//" in SCHEMES:
        hosts = places.split(",") if scheme == "ssh:" else [places]
        if all(map(is_place, hosts)):
            return where
    raise ValueError(
        f"cluster {where!r} must be {', '.join(KINDS)}, or an address such as "
        f"tcp://host:8786, tls://host:8786 or ssh://host1,host2"
        + ("" if "://" in where else suggestion(where, KINDS))
    )


def distinct(values: tuple[int, ...]) -> tuple[int, ...]:
    """Refuse repetitions: they would count twice in means and standard deviations."""
    if repeated := sorted({value for value in values if values.count(value) > 1}):
        raise ValueError(f"{', '.join(map(str, repeated))} occurs more than once in {values}")
    return values


class Options(BaseModel):
    """Base of every part of the configuration: frozen, and unknown fields are errors.

    Attributes
    ----------
    owner : str
        Class that has this group of options with defaults of its own; empty for others.
    """

    owner: ClassVar[str] = ""
    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def name_the_nearest_option(cls, data: Any) -> Any:
        """Refuse an unknown option with the one that is nearest."""
        unknown = (
            [name for name in data if name not in cls.model_fields]
            if (isinstance(data, Mapping))
            else []
        )
        if unknown:
            name, known = unknown[0], dict.fromkeys(paths_of(cls))
            hint = unknown_option(str(name), known)
            raise ValueError(
                f".{name}: there is no such option (got {SHORT.repr(data[name])}){hint}"
            )
        return data

    @model_validator(mode="before")
    @classmethod
    def refuse_flags_for_numbers(cls, data: Any) -> Any:
        """Refuse true and false, in YAML also yes, no, on and off, where a number is meant."""
        for name, field in cls.model_fields.items() if isinstance(data, Mapping) else ():
            kinds = set(get_args(field.annotation)) or {field.annotation}
            if isinstance(data.get(name), bool) and kinds & {int, float} and bool not in kinds:
                raise ValueError(f"{name}={data[name]} must be a number")
        return data


def paths_of(model: type[Options]) -> Iterator[str]:
    """Path of every option of a model, those of its groups too."""
    for name, field in model.model_fields.items():
        yield name
        if isinstance(field.annotation, type) and issubclass(field.annotation, Options):
            yield from (f"{name}.{path}" for path in paths_of(field.annotation))


class PairOptions(Options):
    """Options of the pairs of one modality, beside those of its score."""

    delta: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        description="Least difference of scores of a pair of this modality; that of both if none",
    )
    rho: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Share of this modality's admissible pairs that a sample keeps, 0 for no "
        "pairs by its scores; that of both if none",
    )


PAIRING = tuple(PairOptions.model_fields)
"""Names of the options of pairs that each modality may have for itself."""


class RegisteredOptions(Options):
    """Options of one registered class; the discriminating field names the class.

    Attributes
    ----------
    taken : frozenset of str
        Fields that the class's constructor takes; others stand beside them.
    """

    taken: ClassVar[frozenset[str]] = frozenset()

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments for the class's constructor, and a composition that is not plain."""
        arguments = self.model_dump(include=set(self.taken))
        composition = getattr(self, COMPOSITION, None)
        if composition is not None and composition != type(composition)():
            arguments[COMPOSITION] = composition.model_dump()
        return arguments

    def key_parameters(self) -> dict[str, Any]:
        """Arguments that belong in a key: JSON values, where files lie left out."""
        return {
            name: value
            for name, value in self.model_dump(mode="json").items()
            if name != type(self).discriminator() and not self._is_place(name)
        }

    def _is_place(self, name: str) -> bool:
        """True if a field is the path of a file, given or not."""
        annotation = type(self).model_fields[name].annotation
        return isinstance(getattr(self, name), Path) or Path in get_args(annotation)

    @property
    def learns(self) -> bool:
        """True if the extractor of these options learns from training pictures first."""
        if not LEARNING.keys() <= type(self).model_fields.keys():
            return False
        return make_extractor(self.registered_name, self.arguments()).learns

    @property
    def source(self) -> Modality | None:
        """Modality that teaches the extractor of these options; None where both do at once."""
        made = make_extractor(self.registered_name, self.arguments())
        return None if made.cross_modal else getattr(self, LEARN_FROM)

    @property
    def registered_name(self) -> str:
        """Name of the class in its registry."""
        return str(getattr(self, type(self).discriminator()))

    @classmethod
    def discriminator(cls) -> str:
        """Name of the field that names the class."""
        return next(iter(cls.model_fields))


def options_model(
    name: str, registered: type, *, discriminator: str, compared: bool = False
) -> type[RegisteredOptions]:
    """Model of one class's constructor arguments.

    Parameters
    ----------
    name : str
        Name in the registry, the only value that the discriminating field takes.
    registered : type
        Class whose constructor takes annotated keyword arguments.
    discriminator : str
        Name of the field that tells registered classes apart.
    compared : bool
        True for a method: features, a metric and a grid may be given beside the options.
    """
    arguments = constructor_fields(registered)
    named = {discriminator: (Literal[name], Field(name, description=summary(registered)))}
    beside: dict[str, Any] = {}
    if not compared and may_learn(registered):
        beside |= LEARNING
    if compared:
        composition = group_model(Composition)
        meaning = "On which spaces it learns, and what becomes of its codes"
        beside |= COMPARED | {
            COMPOSITION: (composition, Field(composition(), description=meaning))
        }
        inner = {f"{COMPOSITION}.{n}": kind for n, kind in option_types(Composition).items()}
        reader = BeforeValidator(grid_reader(name, option_types(registered) | inner))
        meaning = "Values to try of options: the best is chosen on training rows and trained"
        beside[GRID] = (Annotated[Grid | None, reader], Field(None, description=meaning))
    check_names_are_free(registered.__name__, arguments, named | beside)
    fields: dict[str, Any] = {**named, **arguments, **beside}

    def check_by_constructing(self: RegisteredOptions) -> RegisteredOptions:
        made = constructed(registered, **self.arguments())
        if compared:
            if getattr(self, ITQ) and made.code_bits:
                raise ValueError(
                    f"{ITQ}={getattr(self, ITQ)} makes binary codes of real ones, and those of "
                    f"{name} are binary already; leave it out"
                )
            check_grid(registered, self.arguments(), getattr(self, GRID))
        return self

    title = "".join(part.title() for part in name.split("_")) + "Options"
    checks: dict[str, Any] = {"check": model_validator(mode="after")(check_by_constructing)}
    model = create_model(title, __base__=RegisteredOptions, __validators__=checks, **fields)
    model.taken = frozenset(arguments)
    return model


def check_names_are_free(owner: str, arguments: Iterable[str], beside: Iterable[str]) -> None:
    """Refuse options of a class with the names of fields that stand beside them."""
    if clash := sorted({*arguments} & {*beside}):
        raise TypeError(
            f"{owner}: no option can be called {clash[0]!r}, as a field beside its options is; "
            "give it another name"
        )


def constructor_types(registered: type) -> dict[str, Any]:
    """Type of every argument of a class's constructor."""
    # The fields of a dataclass are annotated where they are declared.
    declared = registered if is_dataclass(registered) else registered.__init__  # type: ignore[misc]
    hints = get_type_hints(declared)
    types: dict[str, Any] = {}
    for name in inspect.signature(registered).parameters:
        if name not in hints:
            raise TypeError(f"{registered.__name__}: the option {name!r} has no type")
        types[name] = hints[name]
    return types


def constructor_fields(registered: type) -> dict[str, Any]:
    """Type, default and meaning of every argument of a class's constructor, as pydantic fields."""
    meanings = documented_parameters(registered)
    parameters = inspect.signature(registered).parameters
    groups = registered.groups() if issubclass(registered, Estimator) else {}
    fields: dict[str, Any] = {}
    for name, kind in constructor_types(registered).items():
        default = parameters[name].default
        if is_group(kind):
            other = groups[name].keywords
            kind = group_model(kind, **other, owner=registered.__name__ if other else "")
            default = kind()
        elif default is inspect.Parameter.empty:
            default = ...
        elif factory := made_by(registered, name):
            default = factory()
        fields[name] = (kind, Field(default, description=meanings.get(name)))
    return fields


def made_by(registered: type, name: str) -> Callable[[], Any] | None:
    """What makes the default of a field of a dataclass, whose constructor shows a mark for it."""
    declared = getattr(registered, "__dataclass_fields__", {}).get(name)
    factory = getattr(declared, "default_factory", MISSING)
    return None if factory is MISSING else factory


def is_group(kind: Any) -> bool:
    """True for the type of a group of options."""
    return isinstance(kind, type) and issubclass(kind, Estimator)


@cache
def group_model(group: type, *, owner: str = "", **defaults: Any) -> type[Options]:
    """Model of a group of options; its values are checked by the class that has the group.

    Parameters
    ----------
    group : type
        Class of the group.
    owner : str
        Name of the class that has it, if it has defaults of its own there.
    **defaults
        These defaults.
    """
    fields = constructor_fields(group)
    own = f"{owner}{group.__name__}"
    for name, default in defaults.items():
        kind, field = fields[name]
        if isinstance(default, Estimator):
            kind = group_model(type(default), **default.get_params(deep=False), owner=own)
            default = kind()
        fields[name] = (kind, Field(default, description=field.description))
    model = create_model(f"{own}Options", __base__=Options, __doc__=summary(group), **fields)
    model.owner = owner
    return model


def option_types(registered: type) -> dict[str, Any]:
    """Type of every option of a class by path, those of its groups too."""
    types: dict[str, Any] = {}
    for name, kind in constructor_types(registered).items():
        if is_group(kind):
            types |= {f"{name}.{rest}": inner for rest, inner in option_types(kind).items()}
        else:
            types[name] = kind
    return types


def may_learn(registered: type) -> bool:
    """True if an extractor of this class learns from training pictures, with any options."""
    # Options may decide it: a class then says so by its base, by a property, or not at all.
    if issubclass(registered, LearningExtractor):
        return True
    return getattr(registered, "learns", hasattr(registered, "fit")) is not False


def summary(documented: type) -> str:
    """First line of a class's docstring."""
    return (inspect.getdoc(documented) or "").partition("\n")[0].replace("`", "")


def documented_parameters(documented: type) -> dict[str, str]:
    """Meaning of each parameter in the numpydoc docstrings of a class and its bases."""
    meanings: dict[str, str] = {}
    for base in reversed(documented.__mro__):
        text = inspect.cleandoc(vars(base).get("__doc__") or "")
        section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", text, re.M | re.S)
        names: list[str] = []
        for line in section[1].splitlines() if section else ():
            if line[:1].strip():
                names = line.partition(" :")[0].split(", ")
                meanings.update(dict.fromkeys(names, ""))
            else:
                meanings.update({n: f"{meanings[n]} {line.strip()}".strip() for n in names})
    return {name: meaning.replace("`", "") for name, meaning in meanings.items()}


def models_of(
    registry: Mapping[str, type], *, discriminator: str, compared: bool = False
) -> list[type[RegisteredOptions]]:
    """Option models of every class of a registry."""
    return [
        options_model(n, c, discriminator=discriminator, compared=compared)
        for n, c in registry.items()
    ]


def any_of(registry: Mapping[str, type], *, discriminator: str, compared: bool = False) -> Any:
    """Union of the option models of a registry, told apart by ``discriminator``."""
    models = models_of(registry, discriminator=discriminator, compared=compared)
    return one_of(models, discriminator=discriminator)


def one_of(models: Sequence[type[Options]], *, discriminator: str) -> Any:
    """Union of models, told apart by ``discriminator``."""
    return Annotated[reduce(or_, models), Field(discriminator=discriminator)]
