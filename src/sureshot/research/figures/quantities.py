"""What the numbers of a figure are, in words for its axes."""

# Numbers of a pair, by their name in `sureshot.models.systems.system.System.matrices`.
_OF_PAIRS = {
    "score": "score of the pair",
    "similarity": "cosine similarity",
    "belief": "belief that the pair belongs together",
    "distance": "expected distance of the pair",
    "printed score": "re-ranked score as printed",
    "eta": "η (weight of the pair as a negative)",
    "wasserstein": "Wasserstein distance of the Gaussians",
    "log radius": "log radius of the text towards the video",
    "sentence frame": "score of sentence and frames",
    "word patch": "score of words and patches",
    "distribution": "score of samples of the Gaussians",
}

# Numbers of a text or a video, by their name in `...System.measures` less the side.
_OF_ITEMS = {
    "deviation": "standard deviation of the {side}'s Gaussian",
    "spread": "log total variance of the {side}'s Gaussian",
    "vacuity": "vacuity of the {side} (lack of evidence, 0 to 1)",
    "distance vacuity": "vacuity of the {side} from distances (0 to 1)",
    "least eta": "least η of the {side} (weight of a negative)",
    "eta deviation": "standard deviation of the {side}'s Gaussian for η",
}


def quantity(name: str) -> str:
    """What the number of this name is; the name itself where nothing more is known.

    Examples:
        >>> quantity("eta"), quantity("text spread")
        ('η (weight of the pair as a negative)', "log total variance of the text's Gaussian")
        >>> quantity("video mood")
        'video mood'
    """
    side, _, measure = name.partition(" ")
    if side in ("text", "video") and measure in _OF_ITEMS:
        return _OF_ITEMS[measure].format(side=side)
    return _OF_PAIRS.get(name, name)
