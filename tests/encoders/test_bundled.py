from sureshot.encoders.bundled import BundledEncoder


def test_it_is_the_default() -> None:
    assert BundledEncoder().name == "bundled"
