"""The encoder that ships with pip and is used where no other is named."""

from sureshot.encoders.bridge import BridgeEncoder


class BundledEncoder(BridgeEncoder):
    """The label bridge."""

    name = "bundled"
