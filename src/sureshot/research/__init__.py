"""What a researcher does: train, evaluate, draw, reproduce, answer questions about videos.

Importing this package is cheap: what needs numpy or torch is imported at its first use.
The names are listed in `__init__.pyi`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
