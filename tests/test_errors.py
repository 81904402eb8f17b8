from sureshot import errors


def test_every_error_is_a_sureshot_error() -> None:
    kinds = [v for v in vars(errors).values() if isinstance(v, type) and issubclass(v, Exception)]
    assert kinds and all(issubclass(kind, errors.SureshotError) for kind in kinds)


def test_a_video_error_says_whether_it_may_pass() -> None:
    assert not errors.VideoError("is damaged").transient
    assert errors.VideoError("has vanished", transient=True).transient
