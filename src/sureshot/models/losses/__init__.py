"""Losses: what is minimised, as plain functions of similarities, distances and samples."""
