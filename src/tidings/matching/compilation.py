"""When kernels are compiled, for whoever has deadlines: `observed` is that of the kernels."""

from tidings.kernels.compilation import observed

__all__ = ["observed"]
