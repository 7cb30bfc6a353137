"""Folders of the repository."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAIRS_FOLDER = ROOT / "tests" / "support" / "language_pairs"
