"""The library over HTTP, and a page: the same calls and the same words as the terminal."""
