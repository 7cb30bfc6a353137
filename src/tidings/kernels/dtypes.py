"""The types of arrays in groups: a kernel that is handed an address must know what stands there."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

I32 = Annotated[Any, np.int32]
I64 = Annotated[Any, np.int64]
U8 = Annotated[Any, np.uint8]
U32 = Annotated[Any, np.uint32]
U64 = Annotated[Any, np.uint64]
F64 = Annotated[Any, np.float64]
