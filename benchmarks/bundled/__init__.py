"""How the bundled model is made: pictures and captions, what is trained on them, what ships."""
