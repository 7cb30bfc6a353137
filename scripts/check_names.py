"""Check module names: nouns of the field, unique within their top-level package.

    python scripts/check_names.py

STYLE: no gerunds or bare participles, except established terms.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
ESTABLISHED = {
    *("matching", "logging", "routing", "encoding", "string", "strings"),
    *("clustering", "lowering", "mapping", "pending", "renumbering"),
}
PARTICIPLES = {
    *(
        "asked",
        "begun",
        "bound",
        "done",
        "found",
        "given",
        "gone",
        "heard",
        "held",
        "kept",
        "known",
        "laid",
        "left",
    ),
    *(
        "lost",
        "made",
        "met",
        "placed",
        "said",
        "seen",
        "sent",
        "shown",
        "sought",
        "taken",
        "told",
        "undelivered",
    ),
    *(
        "used",
        "wanted",
        "written",
        "addressed",
        "evaluated",
        "happened",
        "lowered",
        "matched",
        "noticed",
        "paused",
    ),
    *("refused", "spooled", "subscribed"),
}
PER_PACKAGE = {"__init__", "__main__", "tables", "kind"}
"""Basenames that a sub-package may share with another one: each has one role, which the name states."""


def name_problems(modules: list[Path]) -> Iterator[str]:
    """Yield a line for each module whose name breaks a rule. Paths are relative to the package."""
    places: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for module in modules:
        *_, last = words = module.stem.strip("_").split("_")
        if module.stem in ESTABLISHED or module.stem in PER_PACKAGE:
            pass
        elif last in PARTICIPLES or (len(words) == 1 and words[0] in PARTICIPLES):
            yield f"{module}: named by a participle; name it by the thing it holds"
        elif re.search(r"..ing$", last) and last not in ESTABLISHED:
            yield f"{module}: named by a gerund; name it by the thing it holds"
        if module.stem not in PER_PACKAGE:
            places[module.parts[0], module.stem].append(module)
    for (package, stem), same in sorted(places.items()):
        if len(same) > 1:
            yield f"{package}: {len(same)} modules are named {stem}: {', '.join(map(str, same))}"


def main() -> int:
    package = ROOT / "src/tidings"
    problems = list(name_problems([path.relative_to(package) for path in sorted(package.rglob("*.py"))]))
    sys.stdout.writelines(f"{problem}\n" for problem in problems)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
