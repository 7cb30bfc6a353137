"""A provider of metadata: documents and rules, what each change does, and the log that makes providers equal."""

from tidings.provider.provider import BATCH, Provider, Source
from tidings.store.metadata import Registered

__all__ = ["BATCH", "Provider", "Registered", "Source"]
