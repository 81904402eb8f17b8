"""Memory that a network gives back and asks for again with every layer."""

import ctypes
import sys

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # of glibc's malloc.h
_KEPT = 1 << 29  # bytes


def keep_freed_memory() -> bool:
    """Tell the allocator of this process to keep up to 512 MB that was given back; for good.

    glibc hands large blocks to the system at once and gets them back as new pages, each of which
    the kernel clears: a third of the time of a network on a processor (LOG.md).

    Returns:
        Whether there is such an allocator.
    """
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # of another C library
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _KEPT) and mallopt(_TRIM_THRESHOLD, _KEPT))
