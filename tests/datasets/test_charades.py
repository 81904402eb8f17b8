"""Charades: the script by default, the viewers' descriptions if asked for."""

import pytest

from sureshot.datasets import load_split
from sureshot.errors import SureshotError
from tests.datasets.files import films, put, told

HEADER = "id,subject,scene,quality,relevance,verified,script,objects,descriptions,actions,length\n"


@pytest.fixture
def root(tmp_path):
    rows = [
        'YSKX3,6RE8,Kitchen,6,7,Yes,"A person cooks, slowly.",food,'
        '"She cooks.; Someone cooks. ;",c1 0.0 1.0,30.5',
        "46GP8,HR43,Kitchen,6,7,Yes,A person looks out.,window,A man looks.,c2 1.0 2.0,24.83",
        "GONE1,HR43,Kitchen,6,7,Yes,Nothing.,,Nothing.,,1.0",
        "YSKX3,6RE8,Kitchen,6,7,Yes,Another script.,food,Another.,c1 0.0 1.0,30.5",
        "EMPT1,6RE8,Kitchen,6,7,Yes,,food,Something.,,30.5",
    ]
    put(tmp_path / "Charades_v1_test.csv", HEADER + "\n".join(rows))
    put(tmp_path / "Charades_v1_train.csv", HEADER + rows[1])
    films(tmp_path / "Charades_v1_480", "YSKX3.mp4", "46GP8.mp4", "EMPT1.mp4")
    return tmp_path


def test_the_text_is_the_script_of_the_first_row(root):
    test = load_split("charades", "test", root)
    assert told(test) == {"YSKX3": ["A person cooks, slowly."], "46GP8": ["A person looks out."]}
    assert (test.missing, test.dropped, test.expected) == (("GONE1", "EMPT1"), 1, 1863)
    assert test.title() == "Charades script test, 2 of 1863 videos, 2 captions"


def test_the_descriptions_are_another_protocol_and_say_so(root):
    test = load_split("charades", "test", root, protocol="descriptions")
    assert told(test)["YSKX3"] == ["She cooks. Someone cooks."]
    assert test.title() == "Charades descriptions test, 3 of 1863 videos, 3 captions"


def test_there_is_no_validation_set_but_one_held_out(root):
    with pytest.raises(SureshotError, match="Charades has no validation set"):
        load_split("charades", "val", root)
    val = load_split("charades", "val", root, ids=put(root / "val.txt", "46GP8"))
    assert (told(val), val.expected) == ({"46GP8": ["A person looks out."]}, None)
