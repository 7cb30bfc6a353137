"""Resources and what becomes of them under rules, as lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tidings.interfaces.cli import output

if TYPE_CHECKING:
    from tidings.metadata.resources import Resource, Value
    from tidings.values import Scalar

_STYLES = {"entered": "bold green", "changed": "bold yellow", "left": "bold red"}


def show_moves(what: str, pairs: Iterable[tuple[str, str]], as_json: bool) -> None:
    for name, uri in sorted(pairs):
        if as_json:
            output.json_line({"rule": name, "kind": what, "uri": uri})
        else:
            output.line((name, "bold cyan"), (what, _STYLES[what]), uri)


def show_resource(resource: Resource, as_json: bool) -> None:
    from tidings.browsing import shown
    from tidings.metadata.resources import Ref

    if as_json:
        values = {name: [_as_json(value) for value in each] for name, each in resource.values.items()}
        output.json_line({"uri": resource.uri, "class": resource.cls, "values": values})
        return
    told = [
        f"{name} {', '.join(f'-> {value.uri}' if isinstance(value, Ref) else shown(value) for value in each)}"
        for name, each in resource.values.items()
    ]
    output.line((resource.uri, "bold cyan"), (resource.cls, "dim"), *told)


def _as_json(value: Value) -> Scalar | dict[str, str]:
    from tidings.metadata.resources import Ref

    return {"ref": value.uri} if isinstance(value, Ref) else value
