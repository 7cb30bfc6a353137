"""Check a commit message: `area: imperative summary` in at most 72 characters, then a blank line.

python scripts/check_commit_message.py .git/COMMIT_EDITMSG
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LONGEST = 72
SUBJECT = re.compile(r"[a-z][a-z0-9 _/,-]*: [^\s].*[^.\s]")
GENERATED = ("Merge ", "Revert ", "fixup! ", "squash! ")


def message_problem(message: str) -> str | None:
    """Return what is wrong with a message, or None."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if subject.startswith(GENERATED):
        return None
    if not SUBJECT.fullmatch(subject):
        return "write the subject as `area: imperative summary`, without a full stop"
    if len(subject) > LONGEST:
        return f"the subject has {len(subject)} characters; {LONGEST} are allowed"
    if len(lines) > 1 and lines[1].strip():
        return "leave the line after the subject empty"
    return None


def main() -> int:
    problem = message_problem(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if problem:
        sys.stderr.write(f"commit message: {problem}\n")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
