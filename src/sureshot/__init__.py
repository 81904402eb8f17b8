"""Sureshot finds the moment you describe in your own videos.

Importing this package is cheap: what needs numpy, torch or ffmpeg is imported at its first use.
The names are listed in `__init__.pyi`.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted([*__all__, "__version__"])
