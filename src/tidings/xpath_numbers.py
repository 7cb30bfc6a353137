"""Numbers as XPath 1.0 reads them: `number()` of a string (section 4.4 of the recommendation).

Space, perhaps a minus sign, digits with or without a point, space. Nothing else is a number: no plus sign, no exponent,
no digits of other scripts. What is no number is NaN, which is unequal to everything and has no order.
"""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))[ \t\r\n]*")


def xpath_number(text: str) -> float:
    """The double nearest to the number a string writes, NaN for other strings."""
    found = _NUMBER.fullmatch(text)
    return float(found[1]) if found else math.nan
