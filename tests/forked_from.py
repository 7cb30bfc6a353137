"""What the process has in memory of which those of tests are forked: the whole command, and the kernels of rules."""

from __future__ import annotations

from importlib import import_module

from tidings.metadata import triggers

for name in (
    "tidings.backbone.following",
    "tidings.backbone.joining",
    "tidings.delivery",
    "tidings.delivery.kinds",
    "tidings.interfaces.cli.main",
    "tidings.interfaces.http.app",
    "tidings.interfaces.http.serving",
    "tidings.provider",
    "tidings.repository.repository",
    "tidings.service",
):
    import_module(name)
triggers.warm()
