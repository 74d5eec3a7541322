"""Selectors of CSS, matched against the elements of an SVG."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from cppcl.pictures.svg.refusal import NotDrawnError

Specificity = tuple[int, int, int]

_NAME = r"(?:[-\w]|[^\x00-\x7f]|\\[0-9a-fA-F]{1,6}\s?|\\.)+"
_SIMPLE = re.compile(
    rf"(?P<type>\*|{_NAME})|\#(?P<id>{_NAME})|\.(?P<class>{_NAME})"
    rf"|\[\s*(?P<attribute>{_NAME})\s*(?:(?P<operator>[~|^$*]?=)\s*"
    rf"(?P<value>\"[^\"]*\"|'[^']*'|{_NAME})\s*(?P<case>[isIS])?\s*)?\]"
    rf"|(?P<colons>::?)(?P<pseudo>{_NAME})"
)
_COMBINATOR = re.compile(r"\s*([>+~])\s*|\s+")
_NTH = re.compile(r"([+-]?\d*)n(?:([+-]\d+))?|([+-]?\d+)")
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))")
# Nobody points at, or has visited, what is in a picture.
_NEVER = frozenset(
    [
        "hover",
        "active",
        "focus",
        "focus-visible",
        "focus-within",
        "visited",
        "target",
        "checked",
        "disabled",
    ]
)


class Tree:
    """Elements of a drawing with their parents and places.

    Parameters
    ----------
    root : Element
        The drawing.
    """

    def __init__(self, root: Element) -> None:
        self.root = root
        self.parents: dict[Element, Element] = {}
        self.places: dict[Element, int] = {root: 0}
        for parent in root.iter():
            for place, child in enumerate(parent):
                self.parents[child] = parent
                self.places[child] = place

    def siblings(self, element: Element) -> list[Element]:
        """Children of the parent of an element, in order; the root alone."""
        parent = self.parents.get(element)
        return [element] if parent is None else list(parent)


Test = Callable[[Element, Tree], bool]


@dataclass(frozen=True)
class Selector:
    """Compounds from right to left, each with the combinator to its left.

    Attributes
    ----------
    compounds : tuple of (str, tuple of Test)
        Combinator, empty for the rightmost compound, and what must hold.
    specificity : tuple of int
        Ids, classes and types.
    """

    compounds: tuple[tuple[str, tuple[Test, ...]], ...]
    specificity: Specificity

    def matches(self, element: Element, tree: Tree) -> bool:
        """True if the selector selects the element."""
        return self._matches(0, element, tree)

    def _matches(self, at: int, element: Element, tree: Tree) -> bool:
        if not all(test(element, tree) for test in self.compounds[at][1]):
            return False
        if at + 1 == len(self.compounds):
            return True
        combinator = self.compounds[at + 1][0]
        parent = tree.parents.get(element)
        if combinator in "> ":
            while parent is not None:
                if self._matches(at + 1, parent, tree):
                    return True
                parent = None if combinator == ">" else tree.parents.get(parent)
            return False
        before = tree.siblings(element)[: tree.places[element]]
        return any(
            self._matches(at + 1, e, tree) for e in before[-1 if combinator == "+" else 0 :]
        )


def parse_selectors(text: str) -> list[Selector]:
    """Selectors of a list separated by commas.

    Raises
    ------
    NotDrawnError
        One is not understood.
    """
    return [_parse(part.strip(), text) for part in split_outside(text, ",")]


def split_outside(text: str, separator: str) -> list[str]:
    """Split at a character outside brackets and strings."""
    parts, depth, quote, start = [], 0, "", 0
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote and text[at - 1] != "\\" else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == separator and depth <= 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def unescaped(name: str) -> str:
    """A name of CSS without its backslashes."""
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16) % 0x110000) if m[1] else m[2], name)


def _parse(text: str, whole: str) -> Selector:
    compounds: list[tuple[str, list[Test]]] = [("", [])]
    ids, classes, types = 0, 0, 0
    at = 0
    while at < len(text):
        match = _SIMPLE.match(text, at)
        if match is None:
            combinator = _COMBINATOR.match(text, at)
            if combinator is None or not compounds[-1][1] or combinator.end() == len(text):
                raise _unknown(whole)
            compounds.append((combinator[1] or " ", []))
            at = combinator.end()
            continue
        at = match.end()
        arguments = None
        if match["pseudo"] and text[at : at + 1] == "(":
            end = _closing(text, at, whole)
            arguments, at = text[at + 1 : end].strip(), end + 1
        test, weight = _simple(match, arguments, whole)
        compounds[-1][1].append(test)
        ids, classes, types = ids + weight[0], classes + weight[1], types + weight[2]
    if not compounds[-1][1]:
        raise _unknown(whole)
    # Each combinator stands before the compound to its right: shift it to the left one.
    combinators = [combinator for combinator, _ in compounds[1:]] + [""]
    pairs = zip(combinators, (tuple(tests) for _, tests in compounds), strict=True)
    return Selector(tuple(pairs)[::-1], (ids, classes, types))


def _closing(text: str, at: int, whole: str) -> int:
    depth = 0
    for here in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[here], 0)
        if not depth:
            return here
    raise _unknown(whole)


def _unknown(text: str) -> NotDrawnError:
    return NotDrawnError(f"the selector {' '.join(text.split())[:80]!r} of a style sheet")


def _simple(match: re.Match[str], arguments: str | None, whole: str) -> tuple[Test, Specificity]:
    if (name := match["type"]) is not None:
        if name == "*":
            return lambda e, t: True, (0, 0, 0)
        tag = unescaped(name)
        return lambda e, t: local_name(e) == tag, (0, 0, 1)
    if match["id"]:
        identity = unescaped(match["id"])
        return lambda e, t: e.get("id") == identity, (1, 0, 0)
    if match["class"]:
        given = unescaped(match["class"])
        return lambda e, t: given in e.get("class", "").split(), (0, 1, 0)
    if match["attribute"]:
        return _attribute(match), (0, 1, 0)
    return _pseudo(match, arguments, whole)


def _attribute(match: re.Match[str]) -> Test:
    name, operator = unescaped(match["attribute"]), match["operator"]
    value = match["value"] or ""
    wanted = value[1:-1] if value[:1] in "\"'" else unescaped(value)
    if match["case"] and match["case"] in "iI":
        wanted = wanted.lower()

    def has(element: Element, tree: Tree) -> bool:
        given = element.get(name)
        if given is None or operator is None:
            return given is not None
        if match["case"] and match["case"] in "iI":
            given = given.lower()
        if operator == "=":
            return given == wanted
        if operator == "~=":
            return wanted in given.split()
        if operator == "|=":
            return given == wanted or given.startswith(wanted + "-")
        if not wanted:
            return False
        if operator == "^=":
            return given.startswith(wanted)
        return given.endswith(wanted) if operator == "$=" else wanted in given

    return has


def _pseudo(match: re.Match[str], arguments: str | None, whole: str) -> tuple[Test, Specificity]:
    name = match["pseudo"].lower()
    if match["colons"] == "::" or (name in _NEVER and arguments is None):
        return lambda e, t: False, (0, 1, 0)
    if name == "root" and arguments is None:
        return lambda e, t: e is t.root, (0, 1, 0)
    if name == "empty" and arguments is None:
        return lambda e, t: not len(e) and not e.text, (0, 1, 0)
    if name in ("is", "where", "not") and arguments:
        inner = parse_selectors(arguments)
        weight = max(s.specificity for s in inner) if name != "where" else (0, 0, 0)
        negated = name == "not"
        return lambda e, t: any(s.matches(e, t) for s in inner) != negated, weight
    place = _PLACES.get(name)
    if place is None or (place[0] is None) == (arguments is None):
        raise _unknown(whole)
    steps, from_end, of_type = place
    if name.startswith("only-"):
        first, last = (_nth((0, 1), end, of_type) for end in (False, True))
        return lambda e, t: first(e, t) and last(e, t), (0, 1, 0)
    return _nth(steps or _steps(arguments or "", whole), from_end, of_type), (0, 1, 0)


_PLACES: dict[str, tuple[tuple[int, int] | None, bool, bool]] = {
    "first-child": ((0, 1), False, False),
    "last-child": ((0, 1), True, False),
    "only-child": ((0, 1), False, False),
    "first-of-type": ((0, 1), False, True),
    "last-of-type": ((0, 1), True, True),
    "only-of-type": ((0, 1), False, True),
    "nth-child": (None, False, False),
    "nth-last-child": (None, True, False),
    "nth-of-type": (None, False, True),
    "nth-last-of-type": (None, True, True),
}


def _steps(text: str, whole: str) -> tuple[int, int]:
    compact = {"odd": "2n+1", "even": "2n"}.get(text.lower(), "".join(text.lower().split()))
    match = _NTH.fullmatch(compact)
    if match is None or len(compact) > 12:
        raise _unknown(whole)
    if match[3]:
        return 0, int(match[3])
    step = {"": 1, "+": 1, "-": -1}.get(match[1])
    return int(match[1]) if step is None else step, int(match[2] or 0)


def _nth(steps: tuple[int, int], from_end: bool, of_type: bool) -> Test:
    step, offset = steps

    def holds(element: Element, tree: Tree) -> bool:
        siblings = tree.siblings(element)
        place = tree.places[element]
        others = siblings[place + 1 :] if from_end else siblings[:place]
        n = 1 + (sum(e.tag == element.tag for e in others) if of_type else len(others))
        return n == offset if not step else (n - offset) % step == 0 and (n - offset) // step >= 0

    return holds


def local_name(element: Element) -> str:
    """Tag of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]
