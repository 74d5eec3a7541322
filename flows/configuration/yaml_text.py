"""Text of YAML as plain data: what is read is bounded, and errors tell a person what to change."""

from __future__ import annotations

import reprlib
from typing import Any

import yaml

from cppcl.errors import InputError

MOST_CHARACTERS = 2**18
MOST_VALUES = 20_000
"""Values of a text, those that an alias repeats counted again."""
LARGEST_INTEGER = 2**63

SHORT = reprlib.Repr()
"""Shows values of any length as briefly as a person wants them."""
SHORT.maxstring = SHORT.maxother = 200
SHORT.maxlist = SHORT.maxdict = 20


class Loader(yaml.SafeLoader):
    """Safe loader that refuses what YAML forbids, or what has no end.

    A key given twice is forbidden, and PyYAML takes the last. An alias in itself has no end, and
    aliases of aliases have more values than any machine can hold.
    """

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Compose a mapping and look at its keys before merge keys (<<) are resolved."""
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if (key.tag, key.value) in seen:
                    raise yaml.MarkedYAMLError(
                        problem=f"the key {key.value!r} is given twice",
                        problem_mark=key.start_mark,
                    )
                seen.add((key.tag, key.value))
        return node

    def get_single_node(self) -> yaml.Node | None:
        """Compose the document, and count its values."""
        node: yaml.Node | None = super().get_single_node()
        if node is not None and count(node, {}) > MOST_VALUES:
            raise yaml.MarkedYAMLError(problem=f"it has more than {MOST_VALUES:,} values")
        return node

    def construct_yaml_int(self, node: Any) -> int:
        """Read a whole number of 64 bits."""
        # Longer ones are not converted: that takes a time that grows with their square.
        value = super().construct_yaml_int(node) if len(node.value) <= 80 else LARGEST_INTEGER
        if not -LARGEST_INTEGER <= value < LARGEST_INTEGER:
            raise yaml.MarkedYAMLError(
                problem=f"{node.value[:20]}... is no whole number of 64 bits",
                problem_mark=node.start_mark,
            )
        return int(value)


Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)


def count(node: yaml.Node, known: dict[int, int]) -> int:
    """Values of a node, those of an alias each time; known holds 0 for what is being counted."""
    if not isinstance(node, yaml.CollectionNode):
        return 1
    if id(node) not in known:
        known[id(node)] = 0
        parts = [
            part for item in node.value for part in (item if isinstance(item, tuple) else (item,))
        ]
        known[id(node)] = 1 + sum(count(part, known) for part in parts)
    elif not known[id(node)]:
        raise yaml.MarkedYAMLError(problem="an alias in itself", problem_mark=node.start_mark)
    return known[id(node)]


def read_yaml(text: str, name: str) -> Any:
    """Read YAML as plain data.

    Parameters
    ----------
    text : str
        One document.
    name : str
        What errors call it.

    Raises
    ------
    InputError
        It is no YAML, holds objects, an alias in itself, or more than is read.
    """
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"{name} has more than {MOST_CHARACTERS:,} characters, which is too long")
    try:
        return yaml.load(text, Loader)
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        raise InputError(f"{name} is not valid YAML: {error}") from error
