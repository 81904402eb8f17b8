"""Tables of the papers, run again on the data at hand."""
