"""Imports of the process from which processes of tests are forked: the whole command, and the kernels of rules."""

from __future__ import annotations

from importlib import import_module

from tidings.metadata.filter import trigger_index

for name in (
    "tidings.metadata.replication.log_follower",
    "tidings.metadata.replication.routing",
    "tidings.delivery.worker",
    "tidings.delivery.destinations",
    "tidings.cli.main",
    "tidings.api.app",
    "tidings.api.server",
    "tidings.metadata.provider.provider",
    "tidings.metadata.repository.repository",
    "tidings.service.tidings",
):
    import_module(name)
trigger_index.warm_up()
