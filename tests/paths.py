"""Where the project lies, and where research data may lie."""

import os
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "sureshot"
DATA = Path(os.environ.get("SURESHOT_DATA", ROOT.parent / "shared" / "data"))
