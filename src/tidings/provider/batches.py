"""How many entries of the log are applied in one transaction: a setting, `TIDINGS_METADATA_BATCH`.

Section 4 of paper 001 measures why: of the cost of a document much is that of the run of the filter that it is in.
"""

from __future__ import annotations

import os
import re

from tidings.errors import SetupError

BATCH = 1_000
SETTING = "TIDINGS_METADATA_BATCH"


def batch_size() -> int:
    """What the setting says, or else 1,000."""
    given = os.environ.get(SETTING, str(BATCH))
    if not re.fullmatch("[1-9][0-9]{0,8}", given):
        accepted = "a whole number from 1 to 999,999,999"
        raise SetupError(f"{SETTING} is not a batch size", received=given[:40], accepted=accepted)
    return int(given)
