"""Text and frames in, scores out: encoders, systems, their layers, losses and scoring."""
