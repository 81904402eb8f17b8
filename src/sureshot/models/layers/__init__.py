"""Layers: small torch modules between an encoder's features and a score."""
