"""YAML as nodes that know where they stand, so that an error can point at what it speaks of.

Only what a schema needs: mappings, lists and texts. Every scalar is taken as it is written: `no` is a name, not a
boolean, and 1 in a list of values is the text 1. Anchors are refused, since they could say the same thing
exponentially often in a few lines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from tidings.core.suggest import did_you_mean, is_name, printable, shorten_list
from tidings.errors import Place, SchemaError

MAX_DEPTH = 100
"""How many mappings and lists may stand inside each other in a file."""


class _Composer(yaml.SafeLoader):
    """PyYAML's reader, stopped at anchors and at a depth that would end the stack."""

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
    """A YAML text as nodes; `places` collects where named things stand."""

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
            raise SchemaError(f"not a schema's YAML: {error.problem or error.context}", place=place) from None
        except yaml.reader.ReaderError as error:
            what = f"a character that YAML does not have: U+{ord(self.text[error.position]):04X}"
            raise SchemaError(what, where=f"character {error.position + 1}") from None

        return root

    def place(self, node: Node) -> Place:
        start, end = node.start_mark.index, node.end_mark.index
        first_line_end = self.text.find("\n", start)
        return Place.at(self.text, start, end if first_line_end < 0 else min(end, first_line_end))

    def problem(
        self, node: Node, what: str, accepted: str | None = None, hint: str | None = None
    ) -> SchemaError:
        return SchemaError(what, place=self.place(node), accepted=accepted, hint=hint)

    def items(
        self, node: Node | None, what: str, known: Collection[str] | None = None
    ) -> Iterator[tuple[str, Node, Node]]:
        """The entries of a mapping: name, where the name stands, value. Nothing at all for nothing."""
        if node is None or is_nothing(node):
            return
        if not isinstance(node, MappingNode):
            raise self.problem(node, f"{what} is not a mapping", "lines of the form name: value")
        seen: set[str] = set()
        for key, value in node.value:
            name = self.name(key, f"a name in {what}")
            if known is not None and name not in known:
                message = f"{what} has no '{printable(name)}'"
                raise self.problem(key, message, shorten_list(known), did_you_mean(name, known))
            if name in seen:
                raise self.problem(key, f"{what} has '{printable(name)}' twice")
            seen.add(name)
            yield name, key, value

    def elements(self, node: Node, what: str) -> list[Node]:
        """The elements of a list."""
        if not isinstance(node, SequenceNode):
            raise self.problem(node, f"{what} is not a list", "a list such as [a, b, c]")
        return list(node.value)

    def text_of(self, node: Node, what: str) -> str:
        """A scalar, as it is written."""
        if not isinstance(node, ScalarNode):
            raise self.problem(node, f"{what} is not a single word or text")
        return str(node.value)

    def name(self, node: Node, what: str) -> str:
        """A scalar that can name something."""
        text = self.text_of(node, what)
        if not is_name(text):
            raise self.problem(node, f"{what} is empty or has control characters")
        return text

    def choice(self, node: Node, what: str, known: Collection[str]) -> str:
        """A scalar that is one of a few words."""
        word = self.text_of(node, what)
        if word not in known:
            raise self.problem(
                node, f"{what} cannot be '{printable(word)}'", shorten_list(known), did_you_mean(word, known)
            )
        return word


def is_nothing(node: Node) -> bool:
    """Whether nothing is written after a name: `chair:`."""
    return isinstance(node, ScalarNode) and node.tag == "tag:yaml.org,2002:null"


class _Writer(yaml.SafeDumper):
    """Mappings on lines, lists in brackets, nothing as nothing."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Writer.add_representer(
    list, lambda writer, data: writer.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)
)
_Writer.add_representer(
    type(None), lambda writer, data: writer.represent_scalar("tag:yaml.org,2002:null", "")
)


def write_yaml(content: dict[str, Any]) -> str:
    """The content as YAML that reads well."""
    return (
        yaml.dump(content, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=100) if content else ""
    )
