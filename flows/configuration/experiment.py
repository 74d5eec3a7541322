"""The one typed configuration of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from cppcl.datasets import UNFINISHED
from cppcl.features.contours.pseudo_sketch import PseudoSketches
from cppcl.methods import METHODS
from cppcl.retrieval.cutoffs import Denominator
from cppcl.retrieval.exact import Metric
from cppcl.retrieval.hamming import HAMMING_RADIUS
from cppcl.validation import suggestion
from flows.configuration.datasets import DataSetOptions, TransferOptions, has_pictures
from flows.configuration.modalities import CurriculumOptions, FeatureOptions
from flows.configuration.options import (
    Options,
    any_of,
    check_cluster,
    check_name,
    check_size,
    distinct,
    documented_parameters,
    group_model,
)
from flows.configuration.published import PublishedOptions
from flows.configuration.splits import FileSplit, SplitOptions, TransferSplit, UnseenSplit
from tasks.cluster.kinds import ClusterOptions, Kubernetes, Slurm, Tls

MethodOptions = any_of(METHODS, discriminator="method", compared=True)

Name = Annotated[str, AfterValidator(check_name)]
Ranks = Annotated[tuple[Annotated[int, Field(ge=1)], ...], AfterValidator(distinct)]
Size = Annotated[str, AfterValidator(check_size)]


def _name_methods(methods: Any) -> Any:
    """Let the key of a method stand for its registered name."""
    if not isinstance(methods, Mapping):
        return methods
    return {
        key: {"method": key, **(options or {})}
        if options is None or isinstance(options, Mapping)
        else options
        for key, options in methods.items()
    }


class Protocol(Options):
    """One way of splitting and scoring, with the methods compared under it."""

    description: str = Field("", description="One sentence for the report")
    split: SplitOptions = Field(description="What is held out, and what is relevant")
    methods: Annotated[
        dict[Name, MethodOptions], BeforeValidator(_name_methods), Field(min_length=1)
    ] = Field(
        description="Methods by the name that tables show; the first answers searches, unless "
        "tuning.choose is set"
    )
    published: PublishedOptions | None = Field(
        None, description="Scores of a publication, shown beside ours"
    )
    on_the_fly: bool = Field(
        False, description="Score over the course of drawing, where drawings are unfinished"
    )

    @model_validator(mode="after")
    def check_published(self) -> Self:
        """Refuse published scores of methods that are not here."""
        if self.published:
            self.published.check_methods(self.methods)
        return self

    @model_validator(mode="after")
    def check_bounds(self) -> Self:
        """Refuse searches that know the truth."""
        for name, options in self.methods.items():
            if options.only_right and (options.tune or options.answers):
                raise ValueError(
                    f"methods.{name}: only_right is a bound that no real data allow; it takes "
                    "answers: false and no tune"
                )
        return self

    @model_validator(mode="after")
    def check_candidates(self) -> Self:
        """Refuse methods none of which may answer."""
        if not self.candidates:
            raise ValueError("answers is false for every method; leave it out for one")
        return self

    @property
    def candidates(self) -> tuple[str, ...]:
        """Names of the methods that may answer searches."""
        return tuple(name for name, options in self.methods.items() if options.answers)

    @property
    def target(self) -> Literal["groups", "labels"]:
        """Column of the sample table that says which pictures belong together."""
        if isinstance(self.split, UnseenSplit | FileSplit | TransferSplit):
            return self.split.target
        return "groups" if self.split.rule == "instance" else "labels"

    @property
    def noise(self) -> dict[str, float]:
        """What is made wrong of that by which training goes."""
        by_pairs = ("wrong_pairs", "near_pairs")
        kinds = by_pairs if self.target == "groups" else ("wrong_labels",)
        return {kind: share for kind in kinds if (share := getattr(self.split.noise, kind))}

    @property
    def held_out(self) -> Literal["classes", "samples", "auto"]:
        """What folds of training rows hold out, so that they are like the test.

        'auto' where the split alone says whether training sees the classes of the test.
        """
        if self.target == "groups" or self.split.rule == "unseen":
            return "classes"
        return "auto" if isinstance(self.split, FileSplit | TransferSplit) else "samples"


class Tuning(Options):
    """How options are chosen for methods with a grid: by cross-validation on training rows."""

    n_folds: int = Field(3, ge=2, description="Folds, each held out once")
    n_repeats: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        1, description="Divisions into folds; auto draws more where samples are few"
    )
    held_out: Literal["auto", "classes", "samples"] = Field(
        "auto", description="Whole classes or instances, or samples of each; as the split does"
    )
    score: Literal["auto", "rank_1", "rank_5", "rank_10", "map"] = Field(
        "auto", description="What is best: rank_1 of instances, map of classes"
    )
    warm_start: bool = Field(
        False, description="Fit descending values of alpha from one another, not each alone"
    )
    seed: int = Field(0, ge=0, description="Seed of the folds")
    halving: bool = Field(
        False, description="Score combinations on few rows, and the best of them on more"
    )
    choose: bool = Field(
        False,
        description="Score methods on the folds, let the best one answer searches, and leave out "
        "methods that refuse the data",
    )

    def search_options(self, protocol: Protocol) -> dict[str, Any]:
        """Options of the search under a protocol, 'auto' replaced."""
        options = self.model_dump(exclude={"choose"})
        if self.held_out == "auto":
            options["held_out"] = protocol.held_out
        if self.score == "auto":
            options["score"] = "rank_1" if protocol.target == "groups" else "map"
        return options


class Evaluation(Options):
    """How codes are ranked and scored."""

    metric: Metric = Field("cosine", description="Similarity of codes")
    ranks: Ranks = Field((1, 5, 10), min_length=1, description="k of each rank-k")
    precisions: Ranks | None = Field(
        None,
        description="n of each precision_at_n, places beyond the gallery's end counting as wrong; "
        "by default 100, where the gallery has as many",
    )
    map_at: Ranks = Field((), description="k of each map_at_k_DIVISOR")
    denominators: Annotated[tuple[Denominator, ...], AfterValidator(distinct)] = Field(
        ("R",),
        min_length=1,
        description="What map_at_k is divided by: R, min_k_r (the lesser of k and R), or hits "
        "(relevant pictures among the first k); several give several scores",
    )
    in_class: bool = Field(
        False,
        description="Where instances are sought: rank-k among the pictures of the query's class, "
        "too",
    )
    radius: int = Field(
        HAMMING_RADIUS, ge=0, description="Hamming distance r of precision_within_r"
    )
    seed: int = Field(0, ge=0, description="Seed of the shuffle that breaks ties")


class ReportOptions(Options):
    """What the report shows besides scores."""

    queries: int = Field(8, ge=0, description="Query sketches in the grid of each protocol")
    nearest: int = Field(5, ge=1, description="Pictures shown for each query")
    seed: int = Field(0, ge=0, description="Seed of the choice of queries")


TlsOptions, SlurmOptions, KubernetesOptions = map(group_model, (Tls, Slurm, Kubernetes))
PseudoSketchesOptions = group_model(PseudoSketches)
CLUSTER = documented_parameters(ClusterOptions)
"""What the options of a cluster mean, by name."""


class Compute(Options):
    """Where and how much at once; changes no result and no key."""

    cluster: Annotated[str, AfterValidator(check_cluster)] = Field(
        "local",
        description="local; the address of a Dask scheduler, tcp://host:8786 or tls://host:8786; "
        "ssh://host1,host2; slurm; or kubernetes",
    )
    workers: int | None = Field(
        None, ge=1, description="Workers that are started; default one a core, or one a host"
    )
    gpu_workers: int | None = Field(None, ge=0, description=CLUSTER["gpu_workers"])
    memory_per_worker: Size = Field("3GiB", description="Memory that such a worker may use")
    max_bad_share: float = Field(
        0.1, ge=0, le=1, description="Share of pictures that may fail before the run fails"
    )
    scheduler_host: str | None = Field(None, description=CLUSTER["scheduler_host"])
    performance_report: str | None = Field(None, description=CLUSTER["performance_report"])
    tls: TlsOptions = Field(TlsOptions(), description=CLUSTER["tls"])
    slurm: SlurmOptions = Field(SlurmOptions(), description=CLUSTER["slurm"])
    kubernetes: KubernetesOptions = Field(KubernetesOptions(), description=CLUSTER["kubernetes"])

    @model_validator(mode="after")
    def check_tls(self) -> Self:
        """Refuse an encrypted address without the files of its certificates."""
        if self.cluster.startswith("tls://"):
            for name, path in self.tls.model_dump().items():
                if path is None:
                    raise ValueError(
                        f"cluster {self.cluster!r} needs tls.{name}: "
                        f"{TlsOptions.model_fields[name].description}"
                    )
        return self

    def cluster_arguments(self) -> tuple[str, int | None, str, ClusterOptions]:
        """What `cluster_session` is given."""
        options = ClusterOptions.from_dict(self.model_dump())
        return self.cluster, self.workers, self.memory_per_worker, options


class Experiment(Options):
    """Everything that decides the result of a run."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=80, description="Name of the experiment"
    )
    dataset: DataSetOptions = Field(description="Data set and its options")
    pseudo_sketches: PseudoSketchesOptions | None = Field(
        None, description="How contours of images become sketches, for splits with pseudo_share"
    )
    longest_side: int = Field(
        256, ge=8, description="Pictures are reduced to this longest side, in pixels"
    )
    block_rows: int = Field(32, ge=1, description="Pictures in one block of extraction")
    features: FeatureOptions = Field(description="What is extracted from pictures")
    more_features: dict[Name, FeatureOptions] = Field(
        {}, description="Other pairs, by the name that methods ask for them (features: NAME)"
    )
    curriculum: CurriculumOptions | None = Field(
        None, description="Scores and pairs; none where samples cannot be scored"
    )
    protocols: dict[Name, Protocol] = Field(
        min_length=1, description="Splits and methods, by the name that tables show"
    )
    tuning: Tuning = Field(Tuning(), description="How options are chosen where there is a grid")
    evaluation: Evaluation = Field(
        Evaluation(), validate_default=True, description="How codes are ranked and scored"
    )
    report: ReportOptions = Field(ReportOptions(), description="What the report shows")
    compute: Compute = Field(Compute(), description="Where it is computed; changes no result")

    @field_validator("evaluation")
    @classmethod
    def check_ranks(cls, evaluation: Evaluation, info: ValidationInfo) -> Evaluation:
        """Refuse ranks without those that are published."""
        for name, protocol in info.data.get("protocols", {}).items():
            published = protocol.published
            if published and published.rank not in {None, *evaluation.ranks}:
                raise ValueError(
                    f"ranks={list(evaluation.ranks)} lacks {published.rank}, which "
                    f"protocols.{name}.published.score={published.score} needs; add it"
                )
        return evaluation

    @field_validator("protocols")
    @classmethod
    def check_features(
        cls, protocols: dict[str, Protocol], info: ValidationInfo
    ) -> dict[str, Protocol]:
        """Refuse methods on features that are not there."""
        known = info.data.get("more_features", {})
        for name, protocol in protocols.items():
            for method, options in protocol.methods.items():
                if options.features not in {None, *known}:
                    raise ValueError(
                        f"{name}.methods.{method}.features={options.features} is not in "
                        f"more_features ({', '.join(known) or 'empty'})"
                        f"{suggestion(options.features, known)}; add it there"
                    )
        return protocols

    @model_validator(mode="after")
    def check_annotator(self) -> Self:
        """Refuse a simulated annotator where there is nothing to look at."""
        simulated = self.curriculum and self.curriculum.sketch_source == "simulated"
        if simulated and not has_pictures(self.dataset):
            raise ValueError(
                "curriculum.sketch_source=simulated looks at pictures, and the data set "
                f"{self.dataset.registered_name!r} has none; use scores, or answers with "
                "sketch_answers"
            )
        return self

    @model_validator(mode="after")
    def check_drawn(self) -> Self:
        """Refuse the order of unfinished drawings where all are finished."""
        if self.dataset.registered_name in UNFINISHED:
            return self
        needing = {
            "curriculum.sketch_source=drawn": (
                self.curriculum and self.curriculum.sketch_source == "drawn",
                "use scores",
            )
        }
        for name, protocol in self.protocols.items():
            place = f"protocols.{name}"
            needing[f"{place}.on_the_fly=true"] = protocol.on_the_fly, "leave it out"
            least = protocol.split.least_drawn
            needing[f"{place}.split.least_drawn={least:g}"] = least > 0, "leave it out"
        for what, (needs, hint) in needing.items():
            if needs:
                raise ValueError(
                    f"{what} needs the data set {' or '.join(UNFINISHED)}, whose drawings "
                    f"are unfinished; {hint}"
                )
        return self

    @model_validator(mode="after")
    def check_pseudo_sketches(self) -> Self:
        """Refuse a share of pseudo-sketches where none are drawn, and the reverse."""
        if self.pseudo_sketches:
            PseudoSketches(**self.pseudo_sketches.model_dump())
        shares = {name: p.split.pseudo_share for name, p in self.protocols.items()}
        asking = [name for name, share in shares.items() if share]
        if asking and self.pseudo_sketches is None:
            raise ValueError(
                f"protocols.{asking[0]}.split.pseudo_share={shares[asking[0]]:g} needs "
                "pseudo_sketches; set it to {contours: canny}"
            )
        for name in asking:
            split = self.protocols[name].split
            if split.audit or any(split.noise.model_dump().values()):
                raise ValueError(
                    f"protocols.{name}.split.pseudo_share: contours would keep the labels and "
                    "partners that noise or an audit changes of their images; leave out one of "
                    "them"
                )
        if self.pseudo_sketches and not asking:
            raise ValueError(
                "pseudo_sketches are drawn for nothing: no split has a pseudo_share; set one, or "
                "leave pseudo_sketches out"
            )
        if self.pseudo_sketches and not has_pictures(self.dataset):
            raise ValueError(
                f"pseudo_sketches: the data set {self.dataset.registered_name!r} has features "
                "and no pictures; leave it out"
            )
        return self

    @model_validator(mode="after")
    def check_rules(self) -> Self:
        """Refuse two data sets that no split tells apart, and one that is to be both."""
        two = isinstance(self.dataset, TransferOptions)
        for name, protocol in self.protocols.items():
            rule = protocol.split.rule
            if rule != "file" and two != (rule == "transfer"):
                hint = (
                    "it would divide the pictures of both; use rule: transfer"
                    if two
                    else "it needs two data sets, dataset: {name: transfer, train_on: ..., "
                    "test_on: ...}"
                )
                raise ValueError(f"protocols.{name}.split.rule={rule}: {hint}")
        return self

    def without_places(self) -> dict[str, Any]:
        """Plain data that decides the result: neither where files lie nor where it is computed."""
        files = {"sketch_answers", "image_answers"}
        splits = {"__all__": {"split": {"audit"}}}
        data = self.model_dump(
            mode="json", exclude={"compute": True, "curriculum": files, "protocols": splits}
        )
        return {**data, "dataset": {"name": self.dataset.name, **self.dataset.key_parameters()}}
