from rankdash.charts.quality import grades
from rankdash.charts.style import INKS

BARS = [("0", 1200), ("1", 30), ("2…3", 4)]


def test_every_label_has_a_bar_with_its_count_written_above():
    bar = grades.figure(BARS, INKS["light"]).data[0]
    assert list(bar.x) == ["0", "1", "2…3"]
    assert list(bar.y) == [1200, 30, 4]
    assert list(bar.text) == ["1,200", "30", "4"]


def test_labels_are_names_and_not_positions_on_a_number_line():
    assert grades.figure(BARS, INKS["dark"]).layout.xaxis.type == "category"


def test_the_words_say_what_the_bars_show():
    assert grades.alt(BARS) == "How many pairs carry each label: 0: 1,200, 1: 30, 2…3: 4."
