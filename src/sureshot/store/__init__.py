"""What is on disk: two Lance tables behind one `Store`, in a folder or in object storage."""
