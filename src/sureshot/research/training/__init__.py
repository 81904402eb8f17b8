"""Training: recipes, batches, one step, the loop around it."""
