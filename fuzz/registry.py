"""All fuzz targets by name."""

from __future__ import annotations

from collections.abc import Mapping

from fuzz import language_targets, publication_targets, web_targets
from fuzz.target import Target

TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (*publication_targets.TARGETS, *language_targets.TARGETS, *web_targets.TARGETS)
}
"""Targets for all parsers of untrusted bytes or text."""
