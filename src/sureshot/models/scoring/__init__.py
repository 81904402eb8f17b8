"""Scores: similarities between texts and videos, as plain functions."""
