"""Descriptions of reproductions: which runs, and which tables and figures are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from cppcl.errors import InputError
from cppcl.report.reproduction.errata import ERRATA
from cppcl.retrieval.cutoffs import family
from cppcl.validation import did_you_mean, suggestion
from flows.configuration.combinations import override
from flows.configuration.load import YAML_SUFFIXES, some
from flows.configuration.options import Options
from flows.configuration.published import Fraction, Score
from flows.configuration.yaml_text import read_yaml


def _check_errata(numbers: tuple[int, ...]) -> tuple[int, ...]:
    for number in numbers:
        if number not in ERRATA:
            raise ValueError(
                f"erratum {number} is not known; there are {min(ERRATA)} to {max(ERRATA)}"
            )
    return numbers


Errata = Annotated[tuple[int, ...], AfterValidator(_check_errata)]


def _check_printed(score: str) -> str:
    if family(score)[0] == score and score != "map":
        raise ValueError(
            f"score {score!r} is not known; give map, map_at_k with or without its divisor, "
            "precision_at_k, rank_k, rank_k_in_class, or acc_at_k"
        )
    return score


PrintedScore = Annotated[str, AfterValidator(_check_printed)]


class RunOptions(Options):
    """An experiment, one of its protocols, and how its options came about."""

    experiment: str = Field(description="Packaged experiment, or one that comes with this file")
    protocol: str = Field(description="Protocol of it that is shown")
    overrides: tuple[str, ...] = Field((), description="key=value changes")
    quick: tuple[str, ...] = Field((), description="More of them with --quick")
    preset: Literal["ours", "as printed"] = Field(
        "ours", description="Options chosen by us, or those that are printed"
    )
    note: str = Field("", description="What a reader must know of it")


class LineOptions(Options):
    """A line of a table of scores."""

    title: str = Field(description="Name for people")
    printed: Fraction | None = Field(None, description="Printed score, a fraction")
    run: str | None = Field(None, description="Run that it is taken from; none if quoted alone")
    method: str | None = Field(None, description="Method of the run")
    errata: Errata = Field((), description="Errata that explain a difference")
    note: str = Field("", description="What a reader must know of it")


class StatementOptions(Options):
    """A statement of the paper on two lines of a table."""

    text: str = Field(description="Statement")
    first: str = Field(description="Line that is said to be ahead")
    second: str = Field(description="Line that is said to be behind")
    errata: Errata = Field((), description="Errata that matter for it")


class ClaimOptions(Options):
    """A statement of the paper on an item as a whole."""

    text: str = Field(description="Statement")
    limit: float | None = Field(None, description="Number that decides whether it holds")
    errata: Errata = Field((), description="Errata that matter for it")


class ItemOptions(Options):
    """What all tables and figures have."""

    title: str = Field(description="Title for people")
    source: str = Field(description="Where it stands in the paper")
    notes: tuple[str, ...] = Field((), description="What a reader must know")


class ScoresItem(ItemOptions):
    """A table of scores beside printed ones."""

    kind: Literal["scores"] = "scores"
    score: Score = Field(description="Which score")
    lines: dict[str, LineOptions] = Field(min_length=1, description="Lines by name")
    statements: tuple[StatementOptions, ...] = Field((), description="Statements on lines")

    @model_validator(mode="after")
    def check_statements(self) -> Self:
        """Refuse statements on lines that are not there."""
        for statement in self.statements:
            for line in (statement.first, statement.second):
                if line not in self.lines:
                    raise ValueError(
                        f"statement on {line}, which is no line{suggestion(line, self.lines)}"
                    )
        return self


class MethodsItem(ItemOptions):
    """Something of several methods of one run."""

    kind: Literal[
        "precision_recall",
        "per_category",
        "differences",
        "convergence",
        "costs",
        "retrieval_time",
    ]
    run: str = Field(description="Run")
    methods: dict[str, str] = Field(min_length=1, description="Names for people, by method")
    score: Score = Field("map", description="Which score")
    printed: dict[str, str] = Field({}, description="What is printed, by our row")
    claims: dict[Literal["ahead", "stable", "lower"], ClaimOptions] = Field(
        {},
        description="Statements: ahead in most categories; stable within fewer rounds than the "
        "limit, and lower at the end than this share of the last method's objective",
    )


class GridItem(ItemOptions):
    """Queries with their nearest pictures."""

    kind: Literal["grid"] = "grid"
    run: str = Field(description="Run")
    method: str = Field(description="Method of it")
    label: str = Field(description="Its name for people")
    queries: int = Field(10, ge=1, description="Queries")
    nearest: int = Field(5, ge=1, description="Pictures for each")
    seed: int = Field(0, ge=0, description="Seed of the choice of queries")


class AxisOptions(Options):
    """Values of one option."""

    option: str = Field(description="Key, as --set takes it")
    title: str = Field(description="Name for people")
    values: tuple[Any, ...] = Field(min_length=1, description="Values")
    quick: tuple[Any, ...] | None = Field(None, description="Those with --quick")
    overrides: tuple[str, ...] = Field((), description="What else is changed with it")
    expected: Literal["sensitive", "flat"] | None = Field(
        None, description="What the paper says of the score over these values"
    )
    statement: str = Field("", description="Its words")
    errata: Errata = Field((), description="Errata that matter")
    without: tuple[str, ...] = Field(
        (), description="What is changed instead where the value is 0"
    )
    seconds: Literal["sketch", "image"] | None = Field(
        None, description="Whose curriculum scores are timed"
    )

    def changes(self, value: Any) -> list[str]:
        """Changes that set the option to a value."""
        set_to = (
            list(self.without) if self.without and not value else [override(self.option, value)]
        )
        return [*self.overrides, *set_to]

    def chosen(self, quick: bool) -> tuple[Any, ...]:
        """Values that are run."""
        return self.quick if quick and self.quick is not None else self.values


class SensitivityItem(ItemOptions):
    """A score over the values of several options, one at a time."""

    kind: Literal["sensitivity"] = "sensitivity"
    run: str = Field(description="Run that is changed")
    methods: dict[str, str] = Field(min_length=1, description="Names for people, by method")
    score: Score = Field("map", description="Which score")
    axes: tuple[AxisOptions, ...] = Field(min_length=1, description="Options")


class SurfaceItem(ItemOptions):
    """A score over the values of two options."""

    kind: Literal["surface"] = "surface"
    run: str = Field(description="Run that is changed")
    method: str = Field(description="Method of it")
    score: Score = Field("map", description="Which score")
    x: AxisOptions = Field(description="Option along x")
    y: AxisOptions = Field(description="Option along y")
    without_both: tuple[str, ...] = Field((), description="What is changed where both are 0")
    claims: dict[Literal["ahead"], ClaimOptions] = Field(
        {}, description="Statement that the best place is ahead of that where both are 0"
    )

    def changes(self, x: Any, y: Any) -> list[str]:
        """Changes that set both options, or leave out what a value of 0 stands for."""
        if self.without_both and not x and not y:
            return list(self.without_both)
        return [*self.x.changes(x), *self.y.changes(y)]


class BinaryItem(ItemOptions):
    """Scores of binary codes beside those of exact ones."""

    kind: Literal["binary_codes"] = "binary_codes"
    run: str = Field(description="Run")
    methods: dict[str, str] = Field(min_length=1, description="Names for people, by method")
    bits: tuple[int, ...] = Field((32, 64, 128), description="Bits of a code")
    score: Score = Field("map", description="Which score")


class PrintedRow(Options):
    """What a publication reports of one method under a protocol."""

    title: str = Field(description="Name for people")
    scores: dict[PrintedScore, Fraction] = Field(
        min_length=1,
        description="Fractions by score, with its convention where it is stated "
        "(map_at_200_hits, rank_1_in_class), without where not (map_at_200, acc_at_1)",
    )
    note: str = Field("", description="What a reader must know of it")


class ProtocolItem(ItemOptions):
    """Published scores of a protocol beside ours, each under its own convention."""

    kind: Literal["protocol"] = "protocol"
    run: str = Field(description="Run of ours")
    methods: dict[str, str] = Field(min_length=1, description="Names for people, by method")
    sizes: tuple[int, int] | None = Field(
        None, description="Sketches that are asked and photos of the gallery, as published"
    )
    rows: dict[str, PrintedRow] = Field(min_length=1, description="Published rows by name")


AnyItem = Annotated[
    ScoresItem
    | MethodsItem
    | GridItem
    | SensitivityItem
    | SurfaceItem
    | BinaryItem
    | ProtocolItem,
    Field(discriminator="kind"),
]


class ReproductionOptions(Options):
    """Everything that decides what a reproduction shows."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$", description="Name")
    title: str = Field(description="Heading of the page")
    dataset: str = Field(description="Data set, as cppcl data status knows it")
    intro: str = Field("", description="What is rebuilt, where it is not the paper")
    notes: tuple[str, ...] = Field((), description="What a reader must know of the whole")
    runs: dict[str, RunOptions] = Field(min_length=1, description="Runs by name")
    items: dict[str, AnyItem] = Field(min_length=1, description="Tables and figures by name")
    include: dict[str, tuple[str, ...]] = Field(
        {}, description="Items of other descriptions that are shown too, whole also with --quick"
    )

    @model_validator(mode="after")
    def check_runs(self) -> Self:
        """Refuse items on runs that are not there."""
        for name, item in self.items.items():
            for run in runs_of(item):
                if run not in self.runs:
                    raise ValueError(
                        f"items.{name} asks for the run {run}, which is not among runs"
                        f"{suggestion(run, self.runs)}"
                    )
        return self


def runs_of(item: AnyItem) -> list[str]:
    """Names of the runs that an item is made of."""
    if isinstance(item, ScoresItem):
        return [line.run for line in item.lines.values() if line.run]
    return [item.run]


def chosen_items(
    options: ReproductionOptions, names: Sequence[str] | None, asked: str = "--only"
) -> dict[str, AnyItem]:
    """Items by name: those that are asked for (by an option of this name), or all."""
    for name in names or ():
        if name not in options.items:
            raise InputError(
                f"{asked} {name}: the reproduction {options.name!r} has no such item; there is "
                f"{', '.join(options.items)}"
            )
    return {name: options.items[name] for name in options.items if not names or name in names}


def folder() -> Path:
    """Folder of the descriptions that come along."""
    return Path(str(resources.files("flows") / "reproductions"))


def reproductions() -> list[str]:
    """Names of the descriptions that come along."""
    return sorted(path.stem for path in folder().glob("*.yaml"))


def load_reproduction(source: str) -> ReproductionOptions:
    """Read a description by its name, or from a YAML file.

    Raises
    ------
    InputError
        If there is none, or something in it cannot be; the message names it.
    """
    path = Path(source)
    if path.suffix not in YAML_SUFFIXES:
        known = reproductions()
        if source not in known:
            raise InputError(
                f"reproduction {source!r} is neither one of {', '.join(known)} nor a .yaml file"
                + did_you_mean(source, known)
            )
        path = folder() / f"{source}.yaml"
    if not path.is_file():
        raise InputError(f"reproduction file {str(path)!r} does not exist")
    try:
        data = read_yaml(path.read_text(encoding="utf-8"), str(path))
        found = ReproductionOptions.model_validate(data)
    except (RecursionError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid YAML: {error}") from error
    except ValidationError as error:
        lines = [
            f"  {'.'.join(map(str, item['loc']))}: {item['msg'].removeprefix('Value error, ')}"
            for item in error.errors(include_url=False)
        ]
        raise InputError(f"reproduction {source!r} is not valid:\n{some(lines)}") from error
    return with_included(with_experiment_files(found, path.parent))


def with_included(found: ReproductionOptions) -> ReproductionOptions:
    """Add the items that are included from other descriptions, and their runs.

    Raises
    ------
    InputError
        If there is no such description or item.
    """
    runs, items = dict(found.runs), dict(found.items)
    for source, names in found.include.items():
        other = load_reproduction(source)
        for name, item in chosen_items(other, names, f"include.{source}").items():
            items[f"{source}_{name}"] = renamed(item, f"{source}_")
            for run in runs_of(item):
                runs[f"{source}_{run}"] = other.runs[run].model_copy(update={"quick": ()})
    return found.model_copy(update={"runs": runs, "items": items})


def renamed(item: AnyItem, prefix: str) -> AnyItem:
    """An item whose runs have a prefix."""
    if isinstance(item, ScoresItem):
        lines = {
            name: line.model_copy(update={"run": line.run and f"{prefix}{line.run}"})
            for name, line in item.lines.items()
        }
        return item.model_copy(update={"lines": lines})
    return item.model_copy(update={"run": f"{prefix}{item.run}"})


def with_experiment_files(found: ReproductionOptions, place: Path) -> ReproductionOptions:
    """Let experiments that are YAML files be read from beside the description."""
    runs = {
        name: run.model_copy(update={"experiment": str((place / run.experiment).absolute())})
        if run.experiment.endswith(YAML_SUFFIXES)
        else run
        for name, run in found.runs.items()
    }
    return found.model_copy(update={"runs": runs})
