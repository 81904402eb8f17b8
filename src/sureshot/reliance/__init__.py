"""Reliance: how far the answers of one evaluation can be believed; numpy only."""
