"""What listeners do with what they hear."""

from sureshot.progress import Notes, Progress, Silent


class Heard(Silent):
    def __init__(self):
        self.told = []

    def update(self, what, done, total, more=""):
        self.told.append((what, done, total, more))


def test_notes_keep_sentences_and_pass_everything_on():
    heard = Heard()
    assert isinstance(heard, Progress)
    notes = Notes(heard)
    notes.line("12 videos")
    notes.update("steps", 1, 2, ", loss 3")
    assert notes.lines == ["12 videos"]
    assert heard.told == [("steps", 1, 2, ", loss 3")]
