"""``cppcl data``: which data sets there are, what is here of them, and how to get the rest."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

from cppcl.datasets import DATASETS, Emoji, PublishedSet, SampleTable
from cppcl.datasets.published.published_set import Status
from cppcl.errors import CppclError, InputError
from cppcl.plugin_modules import load_plugins
from deployments.commands.arguments import add_actions
from deployments.terminal import Terminal
from tasks.workspace import Workspace


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Data sets are kept in $CPPCL_DATA, or in the folder data of the workspace."
    )
    parsers = add_actions(
        parser,
        {
            "list": "list data sets with size, terms and state",
            "status": "show what is here, what is missing and how to get it",
            "get": "download data sets",
            "add": "add archives or folders that you have",
            "preview": "write a contact sheet of a data set, as a PNG",
            "splits": "write the splits of a data set's experiment",
        },
    )
    parsers["status"].add_argument(
        "names", nargs="*", metavar="NAME", help="data sets (default: all)"
    )
    parsers["get"].add_argument("names", nargs="+", metavar="NAME", help="data sets")
    parsers["get"].add_argument(
        "--from",
        dest="mirror",
        metavar="ADDRESS",
        help="download the archive of this one data set from there",
    )
    for name in ("add", "preview", "splits"):
        parsers[name].add_argument("name", metavar="NAME", help="data set")
    add, preview = parsers["add"], parsers["preview"]
    add.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="archives or folders")
    add.add_argument("--link", action="store_true", help="link to a folder instead of copying it")
    preview.add_argument(
        "--output", type=Path, metavar="FILE", help="where to write it (default: NAME.png)"
    )
    preview.add_argument(
        "--classes",
        type=int,
        default=40,
        metavar="N",
        help="how many classes at most (default 40)",
    )
    preview.add_argument(
        "--per-class",
        type=int,
        default=4,
        metavar="N",
        help="how many pictures of each class at most (default 4)",
    )
    parsers["splits"].add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="folder to write to"
    )


def run(options: Namespace) -> int:
    """Run one action on the data sets of a workspace."""
    load_plugins()
    return int(ACTIONS[options.action](options))


def list_sets(options: Namespace) -> int:
    """One line a data set: what it is, how large, on what terms, and whether it is here."""
    directory = Workspace(options.workspace).published_data
    embedded = Emoji()
    rows = [
        [
            "emoji",
            "in packages",
            "857 + 857",
            "Emoji, embedded",
            embedded.licence.replace("\n", " "),
        ]
    ]
    for name, data_set in published().items():
        try:
            state = data_set.status(directory).state
        except InputError:  # `show_status` says what is wrong with it
            state = "unreadable"
        rows.append([name, state, size_of(data_set), data_set.title, data_set.terms])
    Terminal(sys.stdout).table(
        f"data sets in {directory}", ["name", "state", "files", "title", "terms"], rows
    )
    return 0


def show_status(options: Namespace) -> int:
    """What is here of data sets, what is missing and where it can be had; 1 if anything is."""
    directory = Workspace(options.workspace).published_data
    complete = True
    for name in options.names or published():
        data_set = named(name)
        status = data_set.status(directory)
        print(f"{name}: {status.state}, {status.home}")
        for part in data_set.parts:
            if part.name in status.found:
                print(f"  {part.name}: {status.found[part.name]:,} of {part.expected:,} files")
        if status.missing:
            complete = False
            print("\n".join(f"  {line}" for line in data_set.how_to_get(status)))
        else:
            for finding in data_set.findings(status.home):
                print(f"  {finding}")
        print(f"  cite: {data_set.citation}\n  terms: {data_set.terms}")
    return 0 if complete else 1


def get(options: Namespace) -> int:
    """Download data sets."""
    from tasks.stages.fetch import listener

    directory = Workspace(options.workspace).published_data
    if options.mirror:
        if len(options.names) > 1:
            raise InputError(f"--from is of one data set, not of {', '.join(options.names)}")
        data_set = named(options.names[0])
        with Terminal(sys.stderr):
            data_set.fetch_from(directory, options.mirror, listener())
        report_counts(data_set, data_set.status(directory))
        return 0
    with Terminal(sys.stderr):
        for name in options.names:
            print(named(name).fetch(directory, listener()))
    return 0


def add(options: Namespace) -> int:
    """Put archives or folders that the user has where a data set is kept."""
    from tasks.stages.fetch import listener

    directory = Workspace(options.workspace).published_data
    data_set = named(options.name)
    with Terminal(sys.stderr) as terminal:
        for path in options.paths:
            try:
                added = data_set.add(directory, path, link=options.link, listener=listener())
            except InputError as error:
                hint = belongs_to(path, data_set)
                text = str(error).rstrip(".") + "." if hint else str(error)
                raise InputError(f"{text}{hint}") from error
            new = ", ".join(f"{n:,} files of {part}" for part, n in added.new.items())
            print(f"{path}: {new or 'nothing new'}; {added.known:,} were here already")
            for finding in added.findings():
                terminal.message(finding)
    status = data_set.status(directory)
    report_counts(data_set, status)
    return 0


def preview(options: Namespace) -> int:
    """Write a contact sheet of a data set."""
    from cppcl.datasets.preview import contact_sheet

    table, root = open_table(options)
    sheet = contact_sheet(table, root, per_class=options.per_class, n_classes=options.classes)
    output = options.output or Path(f"{options.name}.png")
    output.write_bytes(sheet)
    print(output.absolute())
    return 0


def write_splits(options: Namespace) -> int:
    """Write the splits of the experiment that bears the name of the data set."""
    from cppcl.datasets.splits import split_to_text
    from flows.configuration.load import load_experiment
    from tasks.stages.split import RULES

    experiment = load_experiment(options.name)
    table, _ = open_table(options)
    options.output.mkdir(parents=True, exist_ok=True)
    for name, protocol in experiment.protocols.items():
        arguments = protocol.split.arguments()
        rule = ", ".join(f"{k}={v!r}" for k, v in arguments.items())
        for seed in protocol.split.seeds:
            split = RULES[protocol.split.rule](table, seed=seed, **arguments)
            path = options.output / f"{options.name}-{name}-{seed}.json"
            text = split_to_text(split, table, rule=f"{protocol.split.rule}({rule})", seed=seed)
            path.write_text(text, encoding="utf-8")
            print(path.absolute())
    return 0


def published() -> dict[str, PublishedSet]:
    """Data sets that are downloaded or added, by name, with their default options."""
    return {
        name: made
        for name, made_by in DATASETS.items()
        if issubclass(made_by, PublishedSet) and (made := made_by())
    }


def named(name: str) -> PublishedSet:
    """Data set of a name."""
    sets = published()
    if name not in sets:
        raise InputError(f"{name!r} is not one of the data sets {', '.join(sets)}")
    return sets[name]


def size_of(data_set: PublishedSet) -> str:
    """Number of pictures in words."""
    parts = [part for part in data_set.needed if part.modality is not None]
    return " + ".join(
        f"{sum(p.expected for p in parts if p.modality == m):,}" for m in ("sketch", "image")
    )


def open_table(options: Namespace) -> tuple[SampleTable, Path]:
    """Sample table of a data set, and the folder that its paths are relative to."""
    from tasks.stages.fetch import listener

    data_set = named(options.name)
    with Terminal(sys.stderr):
        root = data_set.fetch(Workspace(options.workspace).published_data, listener())
    return data_set.table(root), root


def report_counts(data_set: PublishedSet, status: Status) -> None:
    """Print how many files of each part are here."""
    print(f"{data_set.name}: {status.state}, {status.home}")
    for name, found in status.found.items():
        expected = next(part.expected for part in data_set.parts if part.name == name)
        print(f"  {name}: {found:,} of {expected:,} files")
    if not status.missing:
        for finding in data_set.findings(status.home):
            print(f"  {finding}")


def belongs_to(path: Path, wrong: PublishedSet) -> str:
    """Which other data set an archive or folder may be of, as the end of a message."""
    import tempfile

    from cppcl.datasets.acquisition.archives import members
    from cppcl.datasets.acquisition.layout import part_of, whole_name

    try:
        with tempfile.TemporaryDirectory() as scratch:
            names = [m.name for m in members(path, whole_name(path), Path(scratch))]
    except (CppclError, OSError):
        return ""
    if any(part_of(n, wrong.parts) for n in names):
        return ""
    for name, data_set in published().items():
        if any(part_of(n, data_set.parts) for n in names):
            return f" It looks like {name}: cppcl data add {name} {path}"
    return ""


ACTIONS: dict[str, Callable[[Namespace], int]] = {
    "list": list_sets,
    "status": show_status,
    "get": get,
    "add": add,
    "preview": preview,
    "splits": write_splits,
}
