"""A provider of metadata: documents and rules, what each change does, and the log that makes providers equal."""

from tidings.provider.batches import BATCH
from tidings.provider.provider import Provider, Source
from tidings.store.metadata import Registered

__all__ = ["BATCH", "Provider", "Registered", "Source"]
