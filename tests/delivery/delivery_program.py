"""A process that delivers until it is killed: `python delivery_program.py URL`."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import timedelta
from threading import Event

from tests.delivery.delivery_setup import RULES
from tidings.delivery import delivery_policy as delivery_rules
from tidings.delivery.destinations import create_senders
from tidings.delivery.dispatcher import Dispatcher
from tidings.delivery.worker import DeliveryWorker
from tidings.operations.http_client import HttpLimits
from tidings.store.store import open_store

delivery_rules.LEASE_MARGIN = timedelta(0)  # leases end soon, so that another process takes over
SOON = replace(
    RULES, retry_delays=(0.05,) * 50, run=20, run_seconds=0.2, grace=0.1, workers=1, times=HttpLimits(1, 1, 1)
)


def main(url: str) -> None:
    with open_store(url) as store, DeliveryWorker(Dispatcher(store, create_senders(SOON), SOON), poll=0.02):
        sys.stdout.write("begun\n")
        sys.stdout.flush()
        Event().wait()


if __name__ == "__main__":
    main(sys.argv[1])
