"""Questions about a video, answered from what a retrieval system knows of both."""
