"""Videos on disk to windows of frames: find, decode, cut, sign."""
