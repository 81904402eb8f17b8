"""Objects of an S3 storage as paths: listed, read by ranges, written whole."""
