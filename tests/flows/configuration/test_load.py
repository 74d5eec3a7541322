"""Experiments from YAML: what is refused, how overrides are read, where paths point."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from cppcl.errors import InputError
from cppcl.features import EXTRACTORS, make_extractor
from cppcl.methods import METHODS, make_method
from flows.configuration.combinations import read_values
from flows.configuration.experiment import Experiment
from flows.configuration.extractors import score_model
from flows.configuration.load import load_experiment, option_paths, packaged_experiments
from flows.configuration.options import options_model
from flows.reproduction.config import load_reproduction

PACKAGED = sorted(packaged_experiments())
Load = Callable[..., Experiment]


@pytest.fixture
def configuration(tmp_path: Path, make_experiment: Callable[..., dict[str, Any]]) -> Any:
    return make_experiment(tmp_path / "shapes")


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Any], str]:
    def write(data: Any) -> str:
        path = tmp_path / "experiment.yaml"
        path.write_text(data if isinstance(data, str) else yaml.safe_dump(data))
        return str(path)

    return write


@pytest.fixture
def load(configuration: Any, write: Callable[[Any], str]) -> Load:
    """Load the configuration, as it is by now, with overrides."""
    return lambda *overrides: load_experiment(write(configuration), overrides)


def at(data: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Set one value of nested dictionaries."""
    *folders, name = path.split(".")
    here = data
    for folder in folders:
        if here[folder] is None:
            here[folder] = {}
        here = here[folder]
    here[name] = value
    return data


@pytest.mark.parametrize("name", PACKAGED)
def test_packaged_experiment_loads(name):
    experiment = load_experiment(name)
    assert experiment.name == name
    assert Experiment.model_validate(experiment.model_dump(mode="json")) == experiment
    for protocol in experiment.protocols.values():
        for method in protocol.methods.values():
            make_method(method.registered_name, **method.arguments())
    for sides in filter(None, (experiment.features, experiment.curriculum)):
        for extractor in (sides.sketch, sides.image):
            make_extractor(extractor.registered_name, extractor.arguments())


def test_packaged_experiments_include_the_embedded_one():
    assert "emoji" in PACKAGED
    assert set(load_experiment("emoji").protocols) == {"instance", "category"}


WRONG: list[tuple[str, Any, str, str]] = [
    ("longest_sides", 64, "longest_sides", "64"),
    ("longest_side", "large", "longest_side", "'large'"),
    ("block_rows", 0, "block_rows", "0"),
    ("name", "a b", "name", "'a b'"),
    ("dataset.name", "emojis", "dataset", "emojis"),
    ("dataset.root_folder", "x", "dataset.folder.root_folder", "'x'"),
    ("dataset.pairing", "label", "dataset.folder.pairing", "'label'"),
    ("features.sketch.name", "pixel", "features.sketch", "pixel"),
    ("features.sketch.sizes", [8, 8], "features.sketch.pixels.sizes", "[8, 8]"),
    ("features.sketch.size", ["a", 8], "features.sketch.pixels.size.0", "'a'"),
    ("curriculum.rho", 1.5, "curriculum.rho", "1.5"),
    ("curriculum.scope", "all", "curriculum.scope", "'all'"),
    ("protocols.instance.split.rule", "random", "protocols.instance.split", "random"),
    ("protocols.instance.split.seeds", [], "protocols.instance.split.instance.seeds", "[]"),
    ("protocols.instance.methods", {}, "protocols.instance.methods", "{}"),
    ("protocols.instance.methods.cpr", None, "protocols.instance.methods.cpr", "cpr"),
    ("protocols.instance.methods.cprl.alhpa", 0.1, "cprl.alhpa", "0.1"),
    ("protocols.instance.methods.cprl.n_atoms", "many", "cprl.n_atoms", "'many'"),
    ("protocols", {}, "protocols", "{}"),
    ("protocols.instance.methods.cprl.alpha", -1, "methods.cprl.cprl", "alpha=-1"),
    ("protocols.instance.methods.cprl.pacing.eta", 1, "methods.cprl.cprl", "eta=1"),
    ("protocols.instance.methods.cprl.pacing", None, "cprl.pacing", "group of options"),
    ("protocols.instance.methods.cprl.printed", "sign", "cprl.printed", "list"),
    ("protocols.instance.methods.cprl.tune", {"pacing": [1]}, "tune", "pacing.eta"),
    ("features.sketch.crop", [9, 0, 3, 9], "features.sketch.pixels", "(9, 0, 3, 9)"),
    ("curriculum.sketch.n_windows", 0, "curriculum.sketch.edgeness", "n_windows=0"),
    ("evaluation.metric", "angle", "evaluation.metric", "'angle'"),
    ("evaluation.ranks", ["one"], "evaluation.ranks.0", "'one'"),
    ("compute.max_bad_share", 1.5, "compute.max_bad_share", "1.5"),
    ("compute.workers", 0, "compute.workers", "0"),
    ("compute.memory_per_worker", "3", "compute.memory_per_worker", "'3'"),
    ("protocols.instance.split.n_train", 1.5, "split.instance.n_train", "n_train=1.5"),
    ("curriculum.delta", float("inf"), "curriculum.delta", "inf"),
    ("protocols.category.methods.class_cca.n_directions", True, "class_cca", "n_directions=True"),
    ("protocols.instance.methods.chance", {"method": "raw_cosine"}, "methods.chance", "'chance'"),
    ("protocols.instance.methods.", {"method": "raw_cosine"}, "methods", "''"),
    ("report.seed", True, "report", "seed=True"),
    ("protocols.instance.split.seeds", [0, 1, 0], "instance.seeds", "0 occurs more than once"),
    ("evaluation.ranks", [1, 5, 5], "evaluation.ranks", "5 occurs more than once"),
    ("evaluation.ranks", [1, 0], "evaluation.ranks.1", "got 0"),
    ("compute.memory_per_worker", "much", "memory_per_worker", "'much'"),
    ("compute.memory_per_worker", "0GiB", "memory_per_worker", "'0GiB'"),
    ("compute.memory_per_worker", "255 MiB", "memory_per_worker", "'255 MiB'"),
    ("compute.memory_per_worker", "1.5.2GiB", "memory_per_worker", "'1.5.2GiB'"),
    ("protocols.instance.split.n_train", True, "n_train", "n_train=True"),
    ("name", "a" * 300, "name", "at most 80 characters"),
]


@pytest.mark.parametrize(("path", "value", "field", "shown"), WRONG)
def test_errors_name_field_and_value(path, value, field, shown, configuration, load):
    at(configuration, path, value)
    with pytest.raises(InputError) as caught:
        load()
    message = str(caught.value)
    assert "experiment.yaml" in message
    assert field in message
    assert shown in message


PUBLISHED = {"source": "Table 1", "score": "rank_1", "values": {"cprl": 0.986}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"values": {"cprl": 0.9, "cprll": 0.8}},
            r"instance: published\.values\.cprll: .*did you mean cprl\? There is centred_cosine, ",
        ),
        (
            {"titles": {"centred": "Cosine"}},
            r"instance: published\.titles\.centred: .*did you mean centred_cosine\?",
        ),
        ({"values": {"zz": 1}}, r"published\.values\.zz: the protocol has no such method\. There"),
        ({"values": {"cprl": 98.6}}, r"published\.values\.cprl: 98\.6 must be a fraction"),
        ({"values": {"cprl": -0.1}}, r"published\.values\.cprl: -0\.1 must be a fraction"),
        ({"values": {"cprl": float("nan")}}, r"published\.values\.cprl: nan must be a fraction"),
        ({"values": {"cprl": True}}, r"published\.values\.cprl: .*number.*got True"),
        ({"values": {}}, r"published\.values: .*at least 1"),
        ({"score": "precision_at_100"}, r"published\.score: score 'precision_at_100' must be map"),
        ({"score": "rank_0"}, r"published\.score: score 'rank_0' must be map"),
        ({"score": "rank_5"}, r"evaluation: ranks=\[1, 2\] lacks 5, which protocols\.instance"),
        ({"trials": 0}, r"published\.trials: .*greater than or equal to 1"),
        ({"trials": True}, r"published: trials=True must be a number"),
        ({"source": ""}, r"published\.source: .*at least 1 character"),
        ({"title": "x"}, r"published\.title: "),
    ],
    ids=str,
)
def test_published_scores_must_fit_their_protocol(changes, message, configuration, load):
    at(configuration, "protocols.instance.published", {**PUBLISHED, **changes})
    with pytest.raises(InputError, match=message):
        load()


def test_published_scores_are_read(configuration, load):
    at(configuration, "protocols.instance.published", PUBLISHED)
    protocols = load("values.cprl=1").protocols
    published = protocols["instance"].published
    assert published is not None
    assert published.model_dump() == {
        **PUBLISHED,
        "values": {"cprl": 1.0},
        "trials": None,
        "titles": {},
    }
    assert protocols["category"].published is None
    # Ranks that nobody gave are looked at as well.
    del configuration["evaluation"]
    at(configuration, "protocols.instance.published.score", "rank_2")
    with pytest.raises(InputError, match=r"ranks=\[1, 5, 10\] lacks 2"):
        load()
    at(configuration, "protocols.instance.published.score", "map")
    load()


def test_every_error_is_told_at_once(configuration, load):
    at(configuration, "block_rows", 0)
    at(configuration, "curriculum.rho", 2)
    del configuration["features"]
    with pytest.raises(InputError) as caught:
        load()
    lines = str(caught.value).splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:]] == [
        "block_rows",
        "features",
        "curriculum.rho",
    ]


def test_an_unknown_experiment_lists_those_there_are(tmp_path):
    with pytest.raises(
        InputError, match=r"'emojis' is neither one of .*emoji.* nor a \.yaml.*'emoji'\?"
    ):
        load_experiment("emojis")
    with pytest.raises(InputError, match=r"nowhere\.yaml' does not exist"):
        load_experiment(str(tmp_path / "nowhere.yaml"))


@pytest.mark.parametrize(
    "where",
    ["tcp://h:8786", "tcp://[::1]:8786", "ssh://h", "ssh://me@h:22,h2,you@h3", "tcp://h", "slurm"],
)
def test_addresses_of_clusters(where):
    assert load_experiment("emoji", [f"cluster={where}"]).compute.cluster == where


@pytest.mark.parametrize(
    "where",
    [
        "tcp://",
        "tcp://h:99999",
        "tcp://h:0",
        "tcp://h:x",
        "tcp://a,b",
        "ssh://h,:22",
        "udp://h:1",
        "lokal",
        "h:1",
        "slurm://x",
        "Kubernetes",
    ],
)
def test_wrong_addresses_of_clusters(where):
    with pytest.raises(InputError, match=r"compute\.cluster: cluster '.*must be local, slurm, "):
        load_experiment("emoji", [f"cluster={where}"])


def test_an_encrypted_address_needs_its_files():
    given = ["cluster=tls://h:8786", "tls.ca=ca.pem", "tls.certificate=c.pem"]
    with pytest.raises(InputError, match=r"cluster 'tls://h:8786' needs tls\.private_key"):
        load_experiment("emoji", given)
    chosen = load_experiment("emoji", [*given, "tls.private_key=k.pem"])
    assert chosen.compute.tls.private_key == "k.pem"


@pytest.mark.parametrize("text", ["- a\n- b\n", "", "emoji"])
def test_a_file_must_hold_a_mapping(text, write):
    with pytest.raises(InputError, match="must hold a mapping of options, not"):
        load_experiment(write(text))


def test_broken_yaml_is_located(write):
    with pytest.raises(InputError, match=r"(?s)experiment\.yaml is not valid YAML: .*line 2"):
        load_experiment(write("name: [a\nb: c"))


@pytest.mark.parametrize(("text", "line"), [("{0}block_rows: 7\n", 0), ("{0}", 3)])
def test_a_key_given_twice_is_located(text, line, configuration, write):
    dumped = yaml.safe_dump(configuration, sort_keys=False)
    if line:
        dumped = dumped.replace("features:", "dataset: {name: emoji}\nfeatures:")
    with pytest.raises(InputError, match=r"the key '(block_rows|dataset)' is given twice\s+in"):
        load_experiment(write(text.format(dumped)))


def test_merged_keys_may_be_given_again(configuration, write):
    text = yaml.safe_dump(configuration, sort_keys=False)
    text = text.replace("cprl:", "cprl: &first").replace(
        "centred_cosine: null", "other: {<<: *first, method: cprl, alpha: 0.5}"
    )
    methods = load_experiment(write(text)).protocols["instance"].methods
    assert (methods["cprl"].alpha, methods["other"].alpha) == (0.01, 0.5)
    assert methods["other"].n_atoms == methods["cprl"].n_atoms


@pytest.mark.parametrize("swapped", [False, True])
def test_a_path_stands_before_or_after_its_group(swapped, configuration, write):
    lines = ["pacing.eta: 2.5", "pacing: {mu: 0.25}"]
    options = ", ".join(reversed(lines) if swapped else lines)
    text = yaml.safe_dump(configuration, sort_keys=False)
    text = text.replace("centred_cosine: null", f"other: {{method: cprl, {options}}}")
    methods = load_experiment(write(text)).protocols["instance"].methods
    assert (methods["other"].pacing.eta, methods["other"].pacing.mu) == (2.5, 0.25)
    with pytest.raises(InputError, match=r"pacing\.eta: pacing is 'B'"):
        load_experiment(write(text.replace("{mu: 0.25}", "B")))


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_file_in_another_encoding_is_named(encoding, tmp_path):
    file = tmp_path / "experiment.yaml"
    file.write_bytes("name: tiny  # für alle".encode(encoding))
    with pytest.raises(InputError, match=r"experiment\.yaml is not UTF-8 text"):
        load_experiment(str(file))


@pytest.mark.parametrize("typed", ["2024", "no", "my pictures #2", "[a", "a: b", "1e3"])
def test_names_and_paths_are_taken_as_typed(typed, configuration, write):
    experiment = load_experiment(
        write(configuration), [f"root={typed}", f"images={typed}", f"pairs={typed}"]
    )
    data = experiment.dataset
    assert (data.root, data.images, data.pairs) == (Path(typed), typed, Path(typed))


def test_names_and_paths_may_be_quoted_or_null(configuration, write):
    file = write(at(configuration, "dataset.pairs", "pairs.csv"))
    experiment = load_experiment(file, ["pairs=null", "root='a # b'"])
    assert (experiment.dataset.pairs, experiment.dataset.root) == (None, Path("a # b"))
    with pytest.raises(InputError, match=r"root: .*got None"):
        load_experiment(file, ["root="])
    with pytest.raises(InputError, match="not valid Unicode"):
        load_experiment(file, ["root=\udcff"])
    with pytest.raises(InputError, match=r"root: .*got None"):  # which has no name to take
        load_experiment("folder", ["root="])


def test_relative_paths_start_at_the_file(configuration, write, tmp_path, monkeypatch):
    at(configuration, "dataset.root", "my pictures")
    at(configuration, "dataset.pairs", "pairs.csv")
    file = write(configuration)
    experiment = load_experiment(file)
    assert experiment.dataset.root == tmp_path / "my pictures"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert load_experiment("../experiment.yaml").dataset.root.resolve() == tmp_path / "my pictures"
    assert load_experiment(file) == experiment
    absolute = at(configuration, "dataset.root", str(tmp_path / "there"))
    assert load_experiment(write(absolute)).dataset.root == tmp_path / "there"


def test_overrides_by_ending_set_every_match(configuration, write):
    file = write(configuration)
    experiment = load_experiment(file, ["seeds=[5]", "cprl.alpha=0.5", "rho=1"])
    assert [p.split.seeds for p in experiment.protocols.values()] == [(5,), (5,)]
    assert experiment.protocols["instance"].methods["cprl"].alpha == 0.5
    assert experiment.curriculum.rho == 1


def test_an_exact_path_sets_that_option_alone(configuration, write):
    # `name` ends many paths, and is one itself.
    experiment = load_experiment(write(configuration), ["name=other", "instance.split.seeds=[7]"])
    assert experiment.name == "other"
    assert experiment.dataset.registered_name == "folder"
    assert experiment.protocols["instance"].split.seeds == (7,)
    assert experiment.protocols["category"].split.seeds == (0, 1)


def test_options_that_the_file_leaves_out_can_be_set(configuration, load):
    del configuration["report"]
    del configuration["protocols"]["category"]["methods"]["class_cca"]["n_directions"]
    experiment = load("report.seed=3", "n_directions=3")
    assert experiment.report.seed == 3
    assert experiment.protocols["category"].methods["class_cca"].n_directions == 3


def test_overrides_apply_in_order(configuration, write):
    file = write(configuration)
    assert load_experiment(file, ["rho=0.1", "rho=0.2"]).curriculum.rho == 0.2
    changed = load_experiment(file, ["features.sketch={name: hog}"])
    assert changed.features.sketch.registered_name == "hog"
    assert load_experiment(file, ["compute.workers=null"]).compute.workers is None
    assert load_experiment(file, ["description=a=b"]).protocols["instance"].description == "a=b"


def test_a_list_of_names_is_a_list(configuration, write):
    changed = load_experiment(write(configuration), ["directives=[--mem=4G, --exclusive]"])
    assert changed.compute.slurm.directives == ("--mem=4G", "--exclusive")


def test_an_ending_that_only_one_role_has_chooses_an_extractor(configuration, load):
    configuration["features"]["sketch"] = {"name": "pixels"}
    score = configuration["curriculum"]["sketch"]["name"]
    overrides = ["features.sketch.name=hog", "sketch.rho=0.5"]
    changed = load(*overrides)
    assert changed.features.sketch.registered_name == "hog"
    assert changed.curriculum.sketch.registered_name == score
    assert changed.curriculum.sketch.rho == 0.5
    del configuration["curriculum"]
    changed = load("sketch.name=hog")
    assert changed.features.sketch.registered_name == "hog"


def test_an_override_of_one_side_leaves_its_alias_alone(configuration, write):
    """YAML's ``image: *same`` is the very object of ``sketch: &same``."""
    configuration["features"]["image"] = configuration["features"]["sketch"]
    text = yaml.safe_dump(configuration)
    assert "*id" in text
    for overrides, sizes in (
        (["features.sketch.size=[4, 4]"], ((4, 4), (8, 8))),
        (["features.image.size=[4, 4]"], ((8, 8), (4, 4))),
        (["size=[4, 4]", "features.image.size=[6, 6]"], ((4, 4), (6, 6))),
    ):
        features = load_experiment(write(text), overrides).features
        assert (features.sketch.size, features.image.size) == sizes


def test_the_packaged_text_is_not_changed_by_overrides():
    before = load_experiment("emoji")
    load_experiment("emoji", ["alpha=0.9", "name=x"])
    assert load_experiment("emoji") == before


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("rho", r"--set 'rho' must read key=value"),
        ("=3", r"--set '=3' must read key=value"),
        ("a..b=3", r"--set 'a\.\.b=3' must read key=value"),
        ("alhpa=1", r"--set alhpa: the experiment has no such option; did you mean .*alpha"),
        ("instance.cprl.alpha=1", r"has no such option"),
        ("sketch.name=hog", r"it could mean features\.sketch\.name or curriculum\.sketch\.name;"),
        ("image={name: hog}", r"it could mean features\.image or curriculum\.image;"),
        ("rho=[1", r"the value is not valid YAML"),
        ("rho=2", r"curriculum\.rho: .*got 2"),
        ("rho=high", r"curriculum\.rho: .*got 'high'"),
        ("n_atoms=2.5", r"n_atoms: .*got 2\.5"),
        ("protocols.instance.methods.cprl=3", r"cprl"),
    ],
)
def test_wrong_overrides(override, message, load):
    with pytest.raises(InputError, match=message):
        load(override)


def test_every_option_can_be_named_by_its_path(configuration):
    paths = set(option_paths(Experiment.model_validate(configuration)))
    assert ("compute", "max_bad_share") in paths
    assert ("protocols", "instance", "methods", "cprl", "alpha") in paths
    assert () not in paths


def test_configuration_is_frozen(configuration):
    experiment = Experiment.model_validate(configuration)
    with pytest.raises(ValidationError, match="frozen"):
        experiment.curriculum.rho = 0.5
    assert Experiment.model_validate_json(experiment.model_dump_json()) == experiment


def test_schema_of_the_form_offers_every_registered_class():
    schema = Experiment.model_json_schema()
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"name", "dataset", "features", "protocols"}
    assert schema["properties"]["block_rows"]["description"]
    definitions = schema["$defs"]
    sketch = definitions["FeatureOptions"]["properties"]["sketch"]
    registered, combined = sketch["anyOf"]
    assert set(registered["discriminator"]["mapping"]) == set(EXTRACTORS)
    combined = definitions[combined["$ref"].rpartition("/")[2]]
    assert combined["additionalProperties"] is True
    assert set(combined["properties"]) == {"name", "weights", "learn_from", "learned"}
    methods = definitions["Protocol"]["properties"]["methods"]["additionalProperties"]
    assert set(methods["discriminator"]["mapping"]) == set(METHODS)
    alpha = definitions["CprlOptions"]["properties"]["alpha"]
    assert (alpha["type"], alpha["default"]) == ("number", 0.003)


def test_options_follow_a_constructor():
    class Thing:
        def __init__(self, *, size: int, where: Path, colour: str = "red") -> None: ...

    model = options_model("thing", Thing, discriminator="name")
    options = model(size=3, where="a/b")
    assert options.registered_name == "thing"
    assert options.arguments() == {"size": 3, "where": Path("a/b"), "colour": "red"}
    assert options.key_parameters() == {"size": 3, "colour": "red"}
    with pytest.raises(ValidationError, match="size"):
        model(where="a")
    with pytest.raises(ValidationError, match="name"):
        model(name="other", size=3, where="a")


def test_a_class_without_a_constructor_has_no_options():
    class Thing:
        name = "thing"

    assert options_model("thing", Thing, discriminator="name")().arguments() == {}


def test_names_of_fields_elsewhere_are_options_like_others():
    class Thing:
        def __init__(self, *, metric: str = "cosine", tune: int = 1, rho: float = 0.5) -> None: ...

    options = options_model("thing", Thing, discriminator="name")(tune=2)
    assert options.arguments() == {"metric": "cosine", "tune": 2, "rho": 0.5}
    with pytest.raises(TypeError, match="'metric'"):
        options_model("thing", Thing, discriminator="method", compared=True)
    with pytest.raises(TypeError, match="'rho'"):
        score_model(type(options))


def test_options_must_have_types():
    class Thing:
        def __init__(self, *, size=3): ...  # type: ignore[no-untyped-def]

    with pytest.raises(TypeError, match="'size'"):
        options_model("thing", Thing, discriminator="name")


def test_places_are_left_out_of_what_decides_the_result(configuration):
    experiment = Experiment.model_validate(configuration)
    data = experiment.without_places()
    assert "compute" not in data
    assert data["dataset"].keys() >= {"name", "sketches", "images", "pairing"}
    assert "root" not in data["dataset"]
    assert str(experiment.dataset.root) not in str(data)


def test_split_files_are_relative_to_the_yaml_file(configuration, load, tmp_path):
    split = {"rule": "file", "path": "splits/{seed}.json", "target": "groups"}
    at(configuration, "protocols.instance.split", split)
    protocol = load().protocols["instance"]
    assert protocol.split.path == str(tmp_path / "splits/{seed}.json")
    assert protocol.target == "groups"
    at(configuration, "protocols.instance.split", {"rule": "file", "path": "cufs-official"})
    protocol = load().protocols["instance"]
    assert (protocol.split.path, protocol.target) == ("cufs-official", "labels")


@pytest.mark.parametrize("amount", [-1, 0.0, 1.0, 1.5, -0.5, True])
def test_amounts_of_counted_splits(amount, configuration, load):
    split = {"rule": "counted", "train_images": amount, "test_sketches": 2}
    at(configuration, "protocols.category.split", split)
    with pytest.raises(InputError, match="train_images"):
        load()
    split["train_images"] = 0
    assert load().protocols["category"].split.train_images == 0


def test_another_split_rule_leaves_out_the_options_that_it_lacks():
    split = (
        load_experiment("folder", ["split.rule=unseen", "n_labels=3"]).protocols["category"].split
    )
    assert (split.rule, split.n_labels, split.seeds) == ("unseen", 3, (0, 1, 2))


def test_noise_is_set_for_every_split_and_counts_where_training_goes_by_it():
    experiment = load_experiment("emoji", ["split.noise.wrong_pairs=0.4"])
    found = {name: protocol.noise for name, protocol in experiment.protocols.items()}
    assert found == {"instance": {"wrong_pairs": 0.4}, "category": {}}
    near = load_experiment("emoji", ["split.noise.near_pairs=0.4"]).protocols["instance"].noise
    assert near == {"near_pairs": 0.4}
    with pytest.raises(InputError, match="wrong_pairs and near_pairs exclude each other"):
        load_experiment("emoji", ["split.noise.wrong_pairs=0.4", "split.noise.near_pairs=0.1"])
    with pytest.raises(InputError, match="wrong_pairs"):
        load_experiment("emoji", ["split.noise.wrong_pairs=1.0"])
    with pytest.raises(InputError, match="only_right is a bound"):
        load_experiment("emoji", ["instance.methods.cprl.only_right=true"])


BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "it has more than 20,000 values"),
        ("name: &a [*a]\n", "an alias in itself"),
        ("a: &a {b: *a}\n", "an alias in itself"),
        (f"name: {'a' * 300_000}\n", "more than 262,144 characters"),
        (f"seed: {'9' * 6000}\n", "is no whole number of 64 bits"),
        ("seed: 0x" + "f" * 6000, "is no whole number of 64 bits"),
        ("name: 2001-99-99\n", "month must be in 1..12"),
        ("[" * 100_000, "recursion"),
        ("!!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("".join(f"k{n}: 1\n" for n in range(100)), "k0: there is no"),
        (f"name: x\nlongest_side: {[1] * 9000}", r"longest_side: .* \.\.\.\]\)"),
    ],
)
@pytest.mark.parametrize("read", [load_experiment, load_reproduction])
def test_yaml_made_to_do_harm_is_refused_at_once(text, message, read, tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read(str(path))
    assert len(str(refused.value)) < 5000
    if read is load_experiment:
        assert re.search(message, str(refused.value))


@pytest.mark.parametrize("value", [BOMB, "2001-99-99", "9" * 6000, "[" * 100_000])
def test_values_made_to_do_harm_are_refused_at_once(value):
    with pytest.raises(InputError, match=r"--set .*: the value is not valid YAML"):
        load_experiment("folder", [f"longest_side={value}"])
    with pytest.raises(InputError, match="the values are not plain YAML"):
        read_values(f"n_atoms=[{value}]")
