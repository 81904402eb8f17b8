import pytest

from sureshot.errors import ModelError
from sureshot.models.encoders import load_encoder
from sureshot.models.encoders.bundled import BundledEncoder
from sureshot.models.encoders.toy import TinyEncoder


def test_names_give_their_encoders() -> None:
    assert isinstance(load_encoder("tiny"), TinyEncoder)
    assert isinstance(load_encoder("bundled"), BundledEncoder)


def test_an_unknown_folder_is_one_clear_sentence(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ModelError) as caught:
        load_encoder(str(tmp_path))
    assert str(tmp_path) in str(caught.value)
