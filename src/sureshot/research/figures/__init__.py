"""Figures of the papers, drawn for any trained run; matplotlib is only loaded to draw."""
