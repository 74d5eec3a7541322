"""Style sheets of an SVG: rules that a picture on a screen is drawn by."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cppcl.pictures.svg.refusal import NotDrawnError
from cppcl.pictures.svg.selectors import Selector, parse_selectors, split_outside, unescaped

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|(\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')", re.DOTALL)
_IMPORTANT = re.compile(r"!\s*important\s*\Z", re.IGNORECASE)
_QUERY = re.compile(r"\(\s*prefers-color-scheme\s*:\s*(light|dark)\s*\)")
# What they say has no effect on a picture that stands still and is drawn without text.
_WITHOUT_EFFECT = frozenset(
    [
        "charset",
        "font-face",
        "font-feature-values",
        "keyframes",
        "-webkit-keyframes",
        "-moz-keyframes",
        "-o-keyframes",
        "page",
        "namespace",
    ]
)


@dataclass(frozen=True)
class Declaration:
    """A property, its value, and whether it is marked as important."""

    name: str
    value: str
    important: bool


@dataclass(frozen=True)
class Rule:
    """Selectors, and what they set."""

    selectors: tuple[Selector, ...]
    declarations: tuple[Declaration, ...]


def parse_rules(text: str) -> list[Rule]:
    """Rules of a style sheet, in order, those of other media left out.

    Raises
    ------
    NotDrawnError
        The sheet refers to another, or holds what is not understood.
    """
    return _rules(_COMMENT.sub(lambda m: m[1] or " ", text))


def parse_declarations(text: str) -> list[Declaration]:
    """Declarations of a style attribute or a rule, in order; broken ones are left out."""
    found = []
    for part in split_outside(_COMMENT.sub(lambda m: m[1] or " ", text), ";"):
        name, colon, value = part.partition(":")
        name, value = name.strip(), value.strip()
        important = _IMPORTANT.search(value)
        value = value[: important.start()].strip() if important else value
        if not colon or not name or (not value and not name.startswith("--")):
            continue
        name = unescaped(name) if name.startswith("--") else name.lower()
        found.append(Declaration(name, value, important is not None))
    return found


def applies_to_screen(query: str) -> bool:
    """True if a media query holds for a light screen.

    Raises
    ------
    NotDrawnError
        It asks for something that a picture does not say.
    """
    return any(_applies(part) for part in query.lower().split(","))


def _applies(query: str) -> bool:
    words = query.strip().removeprefix("only ").strip()
    negated = words.startswith("not ")
    words = words.removeprefix("not ").strip()
    media, _, rest = words.partition(" and ")
    scheme = _QUERY.fullmatch(media)
    if rest:
        # Several conditions: each must hold.
        holds = all([_applies(media), *(_applies(part) for part in rest.split(" and "))])
    elif scheme:
        holds = scheme[1] == "light"
    elif re.fullmatch(r"[a-z]*", media):
        holds = media in ("", "all", "screen")
    else:
        raise NotDrawnError(f"the media query {query.strip()[:80]!r} of a style sheet")
    return holds != negated


def _rules(text: str) -> list[Rule]:
    rules: list[Rule] = []
    at = 0
    while at < len(text):
        end = _next(text, at)
        prelude = re.sub(r"<!--|-->", " ", text[at:end]).strip()
        block = ""
        if text[end : end + 1] == "{":
            closing = _block_end(text, end)
            block, at = text[end + 1 : closing], closing + 1
        else:
            at = end + 1
        if prelude.startswith("@"):
            rules += _at_rule(prelude, block)
        elif text[end : end + 1] == "{":
            if "{" in block:
                raise NotDrawnError(f"nested rules of a style sheet ({prelude[:60]!r})")
            rules.append(Rule(tuple(parse_selectors(prelude)), tuple(parse_declarations(block))))
    return rules


def _at_rule(prelude: str, block: str) -> list[Rule]:
    name, _, rest = prelude[1:].partition(" ")
    name = name.lower()
    if name.startswith("import"):
        raise NotDrawnError(f"{prelude[:80]!r}: other files are never read")
    if name == "media":
        return _rules(block) if applies_to_screen(rest) else []
    if name in _WITHOUT_EFFECT:
        return []
    raise NotDrawnError(f"the rule {prelude[:80]!r} of a style sheet")


_TOKEN = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|\\.|url\([^)\"']*\)|[{};]", re.DOTALL)


def _next(text: str, at: int) -> int:
    """Place of the next brace or semicolon outside strings."""
    for token in _TOKEN.finditer(text, at):
        if token[0] in ("{", ";"):
            return token.start()
    return len(text)


def _block_end(text: str, at: int) -> int:
    """Place of the brace that closes the one at `at`; the end where none does."""
    depth = 0
    for token in _TOKEN.finditer(text, at):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if not depth:
            return token.start()
    return len(text)
