"""YAML nodes with positions, so that errors can point at them.

Limited to the needs of schemas: mappings, lists and texts. Scalars are not converted: `no` is a name, not a boolean,
and 1 in a list of values is the text 1. Anchors are rejected, since a few lines of them expand exponentially.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from tidings.core.suggest import did_you_mean, is_name, printable, shorten_list
from tidings.errors import Place, SchemaError

MAX_DEPTH = 100
"""Maximum nesting of mappings and lists."""


class _Composer(yaml.SafeLoader):
    """Loader that rejects anchors, and nesting that would exhaust the stack."""

    depth = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "anchor", None) is not None:
            raise yaml.MarkedYAMLError(problem="anchors are not supported", problem_mark=event.start_mark)
        if self.depth > MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem="nested too deeply", problem_mark=event.start_mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class Document:
    """A parsed YAML text; `places` collects the positions of named things."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.places: dict[tuple[str, ...], Place] = {}
        self.root = self._compose()

    def _compose(self) -> Node | None:
        try:
            root: Node | None = yaml.compose(self.text, Loader=_Composer)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = Place.at(self.text, mark.index) if mark else None
            raise SchemaError(f"invalid YAML: {error.problem or error.context}", place=place) from None
        except yaml.reader.ReaderError as error:
            message = f"a character that YAML does not allow: U+{ord(self.text[error.position]):04X}"
            raise SchemaError(message, where=f"character {error.position + 1}") from None
        return root

    def place(self, node: Node) -> Place:
        start, end = node.start_mark.index, node.end_mark.index
        first_line_end = self.text.find("\n", start)
        return Place.at(self.text, start, end if first_line_end < 0 else min(end, first_line_end))

    def problem(
        self, node: Node, message: str, accepted: str | None = None, hint: str | None = None
    ) -> SchemaError:
        return SchemaError(message, place=self.place(node), accepted=accepted, hint=hint)

    def items(
        self, node: Node | None, title: str, names: Collection[str] | None = None
    ) -> Iterator[tuple[str, Node, Node]]:
        """Yield the entries of a mapping: name, node of the name, value; nothing for an empty node."""
        if node is None or is_nothing(node):
            return
        if not isinstance(node, MappingNode):
            raise self.problem(node, f"{title} is not a mapping", "lines of the form name: value")
        seen: set[str] = set()
        for key, value in node.value:
            name = self.name(key, f"a name in {title}")
            if names is not None and name not in names:
                message = f"{title} has no '{printable(name)}'"
                raise self.problem(key, message, shorten_list(names), did_you_mean(name, names))
            if name in seen:
                raise self.problem(key, f"{title} has '{printable(name)}' twice")
            seen.add(name)
            yield name, key, value

    def elements(self, node: Node, title: str) -> list[Node]:
        """Return the elements of a list."""
        if not isinstance(node, SequenceNode):
            raise self.problem(node, f"{title} is not a list", "a list such as [a, b, c]")
        return list(node.value)

    def text_of(self, node: Node, title: str) -> str:
        """Return the text of a scalar."""
        if not isinstance(node, ScalarNode):
            raise self.problem(node, f"{title} is not a single word or text")
        return str(node.value)

    def name(self, node: Node, title: str) -> str:
        """Return the text of a scalar that is a name."""
        text = self.text_of(node, title)
        if not is_name(text):
            raise self.problem(node, f"{title} is empty or has control characters")
        return text

    def choice(self, node: Node, title: str, words: Collection[str]) -> str:
        """Return the text of a scalar that is one of the known words."""
        word = self.text_of(node, title)
        if word not in words:
            raise self.problem(
                node, f"{title} cannot be '{printable(word)}'", shorten_list(words), did_you_mean(word, words)
            )
        return word


def is_nothing(node: Node) -> bool:
    """Return whether a name has no value: `chair:`."""
    return isinstance(node, ScalarNode) and node.tag == "tag:yaml.org,2002:null"


class _Writer(yaml.SafeDumper):
    """Dumper for mappings on lines, lists in brackets, and None as an empty value."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Writer.add_representer(
    list, lambda writer, data: writer.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)
)
_Writer.add_representer(
    type(None), lambda writer, data: writer.represent_scalar("tag:yaml.org,2002:null", "")
)


def write_yaml(content: dict[str, Any]) -> str:
    """Serialize content as readable YAML."""
    return (
        yaml.dump(content, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=100) if content else ""
    )
