"""``cppcl curriculum show``: why a picture counts as easy or hard."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from cppcl.errors import InputError
from cppcl.features import EXTRACTORS, Picture, make_extractor
from deployments.commands.arguments import add_actions
from deployments.terminal import Terminal
from tasks.workspace import Workspace


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = "Scores of curricula: how easy a picture is to learn from."
    show = add_actions(
        parser, {"show": "draw cues, best windows and score of a picture, as a PNG"}
    )["show"]
    show.add_argument("picture", type=Path, metavar="PICTURE", help="any picture file or SVG")
    show.add_argument(
        "--score",
        default="objectness",
        metavar="NAME",
        help="objectness (default), edge_boxes or colour_contrast of images, edgeness of sketches",
    )
    show.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="OPTION=VALUE",
        help="option of the score, such as n_windows=2000; "
        "learned=KEY names the artifact of what it learned",
    )
    show.add_argument("--json", action="store_true", help="print one JSON document")
    show.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="PNG file (default: PICTURE-NAME.png, in this folder)",
    )


def run(options: Namespace) -> int:
    """Draw cues, best windows and score of a picture; prints the path of the figure."""
    from cppcl.features.explanation import explanation
    from cppcl.pictures.decoding import decode_picture, is_of_one_colour
    from cppcl.report.layers_figure import layers_png
    from flows.configuration.experiment import Experiment
    from flows.configuration.load import load_extractor

    scores = [name for name, made in EXTRACTORS.items() if hasattr(made, "scored_windows")]
    if options.score not in scores:
        raise InputError(
            f"--score {options.score}: no score of windows; choose one of {', '.join(scores)}"
        )
    chosen = load_extractor(options.score, options.overrides)
    side = Experiment.model_fields["longest_side"].default
    picture = decode_picture(options.picture, longest_side=side)
    terminal = Terminal(sys.stderr)
    if is_of_one_colour(picture):
        terminal.message(f"{options.picture} is of one colour: nothing can be seen in it")
    scorer = fitted(chosen, picture, side, Workspace(options.workspace), terminal)
    found = scorer.scored_windows(picture)
    output: Path = options.output or Path(f"{options.picture.stem}-{options.score}.png")
    title = f"{options.score} of {options.picture.name}: {found.easiness:.4g}"
    output.write_bytes(layers_png(title, explanation(scorer, picture)))
    if options.json:
        best = [
            {"window": found.windows[k].round(4).tolist(), "score": float(found.scores[k])}
            for k in found.best
        ]
        document = {"score": options.score, "easiness": found.easiness, "best": best}
        print(json.dumps({**document, "figure": str(output.absolute())}))
    else:
        terminal.message(f"{options.score}: {found.easiness:.4g}; higher is easier")
        print(output.absolute())
    return 0


def fitted(
    chosen: Any, picture: Picture, side: int, workspace: Workspace, terminal: Terminal
) -> Any:
    """Scorer with what it learned in the workspace, or else from the picture itself."""
    from tasks.stages.learn import find_learned, latest_learned
    from tasks.workers.extractors import ExtractorSpec

    name, arguments, store = chosen.registered_name, chosen.arguments(), workspace.store
    if not chosen.learns:
        return make_extractor(name, arguments)
    asked = find_learned(store, chosen.learned, name) if chosen.learned else None
    learned = asked or latest_learned(store, name, arguments)
    if learned:
        terminal.message(f"{name}: as learned in {learned.stage}/{learned.key[:12]}")
        spec = ExtractorSpec(name, json.dumps(arguments), side, learned)
        return spec.make(str(workspace.root / "store"))
    terminal.message(
        f"{name}: nothing that fits was learned in {workspace.root}, so windows are compared with "
        "those of this picture alone, and its score with no other; run an experiment that scores "
        f"by {name}, or --set learned=KEY"
    )
    return make_extractor(name, arguments).fit([picture])
