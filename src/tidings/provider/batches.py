"""How many entries of the log are applied in one transaction: a setting, `TIDINGS_METADATA_BATCH`.

Section 4 of paper 001 measures why: of the cost of a document much is that of the run of the filter that it is in.
"""

from __future__ import annotations

import os

from tidings.errors import SetupError

BATCH = 1_000
SETTING = "TIDINGS_METADATA_BATCH"


def batch_size() -> int:
    """What the setting says, or else 1,000."""
    given = os.environ.get(SETTING, str(BATCH))
    if not given.isascii() or not given.isdigit() or int(given) < 1:
        raise SetupError(f"{SETTING} is no size of a batch", received=given, accepted="1 or more")
    return int(given)
