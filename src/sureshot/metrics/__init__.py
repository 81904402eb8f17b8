"""Metrics: ranks and recall, their intervals, the report of an evaluation; numpy only."""
