"""Messages that the page of troubleshooting quotes are messages of the code."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
PACKAGES = ("cppcl", "storage", "tasks", "flows", "deployments")
QUOTED = [text.strip() for text in re.findall(r"(?ms)^```text\n(.*?)^```$", PAGE)]
LEAST_LETTERS = 12
"""Shorter texts of the code are none that would tell one message from another."""
HOLE = "\0"


def texts_of(source: str) -> list[list[str]]:
    """Texts of a module, each as its fixed parts; what is filled in lies between them."""
    found = []
    nodes = list(ast.walk(ast.parse(source)))
    pieces = {id(v) for node in nodes if isinstance(node, ast.JoinedStr) for v in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = [""]
            for value in node.values:
                if isinstance(value, ast.Constant):
                    parts[-1] += str(value.value)
                else:
                    parts.append("")
            found.append(parts)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in pieces
        ):
            found.append([node.value])
    return found


def patterns_of(parts: list[str]) -> list[re.Pattern[str]]:
    """What a text looks like when it is filled in, and what each line of it does."""
    whole = HOLE.join(parts).strip("\n")
    return [
        re.compile(".+".join(map(re.escape, text.split(HOLE))))
        for text in {whole, *whole.split("\n")}
        if len(text.replace(HOLE, "")) >= LEAST_LETTERS
    ]


@pytest.fixture(scope="module")
def patterns() -> list[re.Pattern[str]]:
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    texts = [text for path in files for text in texts_of(path.read_text(encoding="utf-8"))]
    return [pattern for text in texts for pattern in patterns_of(text)]


def is_known(message: str, patterns: list[re.Pattern[str]]) -> bool:
    """Whether a text of the code becomes the message."""
    return any(pattern.fullmatch(message) for pattern in patterns)


@pytest.mark.parametrize("message", QUOTED)
def test_a_quoted_message_is_one_of_the_code(message, patterns):
    assert is_known(message, patterns)


def test_messages_are_quoted():
    assert len(QUOTED) > 20


def test_what_the_code_does_not_say_is_noticed():
    (text,) = texts_of("f'{name}: {error}\\n{name} holds no picture at all'")
    patterns = patterns_of(text)
    assert is_known("x holds no picture at all", patterns)
    assert not is_known("x holds no pictures at all", patterns)
    assert not is_known("something else entirely", patterns)
