"""What a researcher does: extract, train, score, draw, reproduce, answer questions."""
