from sureshot.settings import build, to_values
from sureshot.trust.card import ProbabilityQuality, Quality


def test_what_was_measured_is_kept_in_a_card_and_read_again() -> None:
    one = ProbabilityQuality(40, 0.5, 0.7, 0.6, 0.8, 0.2, 0.25, 0.05, 0.04)
    quality = Quality(top1=one, result=one, absent_auroc=None)
    assert build(Quality, to_values(quality), "quality") == quality
