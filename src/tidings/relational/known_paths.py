"""Known paths: linear paths of subscriptions, tag paths of documents, and their matches (section 3.4).

Both sides are few, whatever the number of subscriptions, so the driver keeps them. Each new path is matched once with
the known paths of the other side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tidings.documents.model import show_node, steps_of
from tidings.errors import StoreError
from tidings.relational.branch_check import bp_position
from tidings.relational.linear_match import LinearPath, PathMatch
from tidings.relational.tables import Version, brinfo_id, path_id

Learned = dict[str, dict[str, Any]]
"""New rows by table, in columns."""


@dataclass(slots=True)
class KnownPaths:
    """All paths, by id, and the tag paths that match each linear path."""

    match: PathMatch = field(default_factory=PathMatch)
    ids: dict[int, str] = field(default_factory=dict)
    tags: dict[str, list[str]] = field(default_factory=dict)
    linear: dict[str, list[str]] = field(default_factory=dict)
    infos: dict[str, dict[str, None]] = field(default_factory=dict)

    @classmethod
    def read(cls, version: Version) -> KnownPaths:
        known = cls()
        for path in version.rows("query_linear_path", ["linearpath"])["linearpath"].to_pylist():
            known._add_linear(path)
        for path in version.rows("tagpath_map", ["tagpath"])["tagpath"].to_pylist():
            known._add_tag(path)
        infos = version.rows("linearpath_brinfo", ["linearpath", "brinfo"])
        for path, info in zip(infos["linearpath"].to_pylist(), infos["brinfo"].to_pylist(), strict=True):
            known._add_info(path, info)
        return known

    def learn_linear(self, paths: Iterable[str], infos: Iterable[tuple[str, str]]) -> Learned:
        """Add linear paths and branching informations; return the new rows."""
        new = [path for path in dict.fromkeys(paths) if path not in self.linear]
        matched = [(tag, path) for path in new for tag in self._add_linear(path)]
        fresh = [pair for pair in dict.fromkeys(infos) if pair[1] not in self.infos[pair[0]]]
        for path, info in fresh:
            self._add_info(path, info)
        branching = [(tag, path, info) for path, info in fresh for tag in self.linear[path]]
        return _some(
            query_linear_path=_linear_columns(new),
            linearpath_brinfo=_info_columns(fresh),
            path_match=_match_columns(matched),
            tagpath_brinfo=_position_columns(branching),
        )

    def learn_tags(self, paths: Iterable[str]) -> Learned:
        """Add tag paths; return the new rows."""
        new = [path for path in dict.fromkeys(paths) if path not in self.tags]
        matched = [(tag, path) for tag in new for path in self._add_tag(tag)]
        branching = [(tag, path, info) for tag, path in matched for info in self.infos[path]]
        return _some(
            tagpath_map=_tag_columns(new),
            path_match=_match_columns(matched),
            tagpath_brinfo=_position_columns(branching),
        )

    def _add_linear(self, path: str) -> list[str]:
        self._number(path_id(path), path)
        self.infos[path] = {}
        self.linear[path] = self.match.add_linear(path)
        for tag in self.linear[path]:
            self.tags[tag].append(path)
        return self.linear[path]

    def _add_tag(self, tag: str) -> list[str]:
        self._number(path_id(tag), tag)
        self.tags[tag] = self.match.add_tag(tag)
        for path in self.tags[tag]:
            self.linear[path].append(tag)
        return self.tags[tag]

    def _add_info(self, path: str, info: str) -> None:
        self._number(brinfo_id(path, info), f"{path} {info}")
        self.infos[path][info] = None

    def _number(self, id: int, text: str) -> None:
        """Register an id; refuse a collision of two paths."""
        other = self.ids.setdefault(id, text)
        if other != text:
            raise StoreError("two paths have the same id", received=f"{text} and {other}")


def _some(**tables: dict[str, Any]) -> Learned:
    return {name: columns for name, columns in tables.items() if next(iter(columns.values()))}


def _linear_columns(paths: list[str]) -> dict[str, Any]:
    shown = [LinearPath.of(path).show() for path in paths]
    return {
        "linearpath": paths,
        "id": list(map(path_id, paths)),
        "prefix": [prefix for prefix, _, _ in shown],
        "postfix": [postfix for _, postfix, _ in shown],
        "middle": [middle for _, _, middle in shown],
    }


def _info_columns(infos: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "linearpath": [path for path, _ in infos],
        "linearpath_id": [path_id(path) for path, _ in infos],
        "brinfo": [info for _, info in infos],
        "brinfo_id": [brinfo_id(path, info) for path, info in infos],
    }


def _tag_columns(tags: list[str]) -> dict[str, Any]:
    inverted = ["/".join(_inverted(tag)) for tag in tags]
    return {"tagpath": tags, "inv_tagpath": inverted, "tagpath_id": list(map(path_id, tags))}


def _inverted(tag: str) -> Iterator[str]:
    return (show_node(step.kind, step.name) for step in reversed(steps_of(tag)))


def _match_columns(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "tagpath_id": [path_id(tag) for tag, _ in pairs],
        "linearpath_id": [path_id(path) for _, path in pairs],
    }


def _position_columns(rows: list[tuple[str, str, str]]) -> dict[str, Any]:
    return {
        "tagpath_id": [path_id(tag) for tag, _, _ in rows],
        "brinfo_id": [brinfo_id(path, info) for _, path, info in rows],
        "bp_position": [bp_position(path, info, tag).show() for tag, path, info in rows],
    }
