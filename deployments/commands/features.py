"""``cppcl features list|show``: which extractors there are, and what one sees of a picture."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

from cppcl.errors import CppclError, InputError
from cppcl.features import EXTRACTORS, Extractor, make_extractor
from cppcl.plugin_modules import load_plugins
from deployments.commands.arguments import add_actions
from deployments.terminal import MISSING, Terminal
from tasks.progress import Progress, tell
from tasks.workspace import Workspace


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = "Feature extractors and scores; A+B joins several into one (lks+cnn)."
    parsers = add_actions(
        parser,
        {
            "list": "list extractors: values, device, time, licence of weights",
            "show": "draw what an extractor sees in a picture, as a PNG",
        },
    )
    parsers["list"].add_argument("--no-timing", action="store_true", help="do not measure times")
    parsers["list"].add_argument("--json", action="store_true", help="print one JSON document")
    show = parsers["show"]
    show.add_argument("name", metavar="NAME", help="extractor, or several joined by '+'")
    show.add_argument("picture", type=Path, metavar="PICTURE", help="any picture file or SVG")
    show.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="OPTION=VALUE",
        help="option of the extractor, such as contours=canny; "
        "learned=KEY names the artifact of what it learned",
    )
    show.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="PNG file (default: PICTURE-NAME.png, in this folder)",
    )


def run(options: Namespace) -> int:
    """Run one action on the extractors."""
    load_plugins()
    return int(ACTIONS[options.action](options))


def list_extractors(options: Namespace) -> int:
    """One line an extractor, with its default options."""
    with Terminal(sys.stderr) as terminal:
        found = []
        for number, name in enumerate(EXTRACTORS, start=1):
            found.append(describe(name, terminal, timed=not options.no_timing))
            tell(Progress("features", "measured", number, len(EXTRACTORS)))
    if options.json:
        print(json.dumps(found))
        return 0
    kinds = () if options.no_timing else kinds_of_pictures()
    rows = [
        [
            row["name"],
            shown(row["dimension"]),
            "yes" if row["learns"] else MISSING,
            row["device"],
            *(shown(row["milliseconds"][kind], ".1f") for kind in kinds),
            row["licence"] or MISSING,
        ]
        for row in found
    ]
    Terminal(sys.stdout).table(
        "feature extractors" + ("" if options.no_timing else "; ms for one picture of 256 pixels"),
        [
            "name",
            "values",
            "learns",
            "device",
            *(f"ms, {kind}" for kind in kinds),
            "licence of weights",
        ],
        rows,
    )
    return 0


def describe(name: str, terminal: Terminal, *, timed: bool) -> dict[str, Any]:
    """Describe an extractor; what cannot be known is None."""
    extractor = make_extractor(name)
    row: dict[str, Any] = {
        "name": name,
        "dimension": None,
        "learns": extractor.learns,
        "device": device_of(extractor),
        "licence": getattr(extractor, "licence", None),
    }
    timed_kinds = kinds_of_pictures() if extractor.takes_pictures else ()
    with suppress(InputError):  # rows that are given have no length of their own
        row["dimension"] = extractor.dimension
    if timed:
        times = row["milliseconds"] = dict.fromkeys(kinds_of_pictures())
        for kind in timed_kinds:
            try:
                times[kind] = time_of(extractor, kind)
            except CppclError as error:  # weights that are not here
                terminal.message(f"{name}: {error}")
    return row


def time_of(extractor: Extractor, kind: Any) -> float:
    """Milliseconds for a picture: strokes of a sketch, edges of a photograph, as contours go."""
    from cppcl.features.timing import as_if_learned, example, milliseconds

    if extractor.parameters().get("contours") in {"strokes", "canny"}:
        contours = "strokes" if kind == "sketch" else "canny"
        extractor = make_extractor(extractor.name, {"contours": contours})
    return round(milliseconds(as_if_learned(extractor), example(kind)), 2)


def kinds_of_pictures() -> tuple[str, ...]:
    """Pictures on which time is measured."""
    from cppcl.features.timing import Kind

    return get_args(Kind)


def device_of(extractor: Extractor) -> str:
    """Where an extractor runs on this machine."""
    if extractor.device == "cpu":
        return "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def shown(value: float | None, form: str = "") -> str:
    """Text of a number that may be unknown."""
    return MISSING if value is None else format(value, form)


def show(options: Namespace) -> int:
    """Draw what an extractor sees of a picture; prints the path of the figure."""
    from cppcl.features.explanation import explanation
    from cppcl.pictures.decoding import decode_picture, is_of_one_colour
    from cppcl.report.layers_figure import layers_png
    from flows.configuration.experiment import Experiment
    from flows.configuration.load import load_extractor

    chosen = load_extractor(options.name, options.overrides)
    side = Experiment.model_fields["longest_side"].default
    picture = decode_picture(options.picture, longest_side=side)
    terminal = Terminal(sys.stderr)
    if is_of_one_colour(picture):
        terminal.message(f"{options.picture} is of one colour: nothing can be seen in it")
    extractor = as_learned(chosen, side, Workspace(options.workspace), terminal)
    if not extractor.takes_pictures:
        raise InputError(f"{options.name} takes rows of numbers, so that it sees no pictures")
    layers = explanation(extractor, picture)
    default = Path(f"{options.picture.stem}-{options.name}.png")
    output: Path = options.output or default
    changed = ", ".join(options.overrides)
    title = f"{options.name} of {options.picture.name}" + (f" ({changed})" if changed else "")
    output.write_bytes(layers_png(title, layers))
    print(output.absolute())
    return 0


def as_learned(chosen: Any, side: int, workspace: Workspace, terminal: Terminal) -> Extractor:
    """Extractor with what it learned: the one asked for, or the newest that fits."""
    from flows.configuration.modalities import what_learns
    from tasks.stages.learn import find_learned, latest_learned
    from tasks.workers.extractors import ExtractorSpec

    name, arguments, learned = chosen.registered_name, chosen.arguments(), None
    if chosen.learns:
        store = workspace.store
        if chosen.learned:
            learned = find_learned(store, chosen.learned, what_learns(chosen))
        else:
            learned = latest_learned(store, name, arguments)
            terminal.message(
                f"{name}: as learned in {learned.stage}/{learned.key[:12]}"
                if learned
                else f"{name}: nothing that fits was learned in {workspace.root}, so the vector "
                "is left out; run an experiment with these options, or --set learned=KEY"
            )
    spec = ExtractorSpec(name, json.dumps(arguments), side, learned)
    return spec.make(str(workspace.root / "store"))


ACTIONS: dict[str, Callable[[Namespace], int]] = {"list": list_extractors, "show": show}
