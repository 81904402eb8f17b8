"""The systems, one paper a file."""
