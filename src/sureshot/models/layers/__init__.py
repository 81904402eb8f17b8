"""Layers that systems share; what masks are is in `sureshot.models.shapes`."""
