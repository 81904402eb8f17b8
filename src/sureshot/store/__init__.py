"""What is on disk: two Lance tables behind one `Store`, in a folder or in object storage."""

import os
import platform
from pathlib import Path

from sureshot.errors import SureshotError

# Lance writes on stderr about its own retries, which are harmless here, and at each of them about a
# certificate, which our error is about. Read when it is imported.
os.environ.setdefault("LANCE_LOG", "error,rustls_platform_verifier=off")
_PROCESSOR = Path("/proc/cpuinfo")  # of Linux


def lacks_avx2() -> bool:
    """Whether this is an x86 processor without AVX2; False where that cannot be found out."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return False
    try:
        with _PROCESSOR.open(encoding="utf-8") as lines:
            flags = next((line.split() for line in lines if line.startswith("flags")), None)
    except OSError:
        return False
    return flags is not None and "avx2" not in flags


if lacks_avx2():  # Lance would end the process by an illegal instruction
    raise SureshotError(
        "This processor has no AVX2, which Lance, the index's database, is built for; use a "
        "machine with a processor from 2015 or later."
    )
