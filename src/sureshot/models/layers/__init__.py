"""Layers that systems share.

Everywhere a mask is True where a token, word or frame is real, and every item has at least one.
What stands at padding has no influence, but must be finite.
"""
