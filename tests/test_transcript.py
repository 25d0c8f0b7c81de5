"""A turn as it is written down, on a terminal and elsewhere."""

import io

from api.client.event import parse_event
from api.client.transcript import Transcript
from shared.chunks import Chunk
from tests.fake_api import numbered
from tests.terminal import FIGURES, call, done, text


class Screen(io.StringIO):
    """A terminal, on which both streams meet."""

    def isatty(self) -> bool:
        return True


def write_down(screen: io.StringIO, *chunks: Chunk) -> str:
    transcript = Transcript(screen, screen)
    for line in numbered(*chunks):
        transcript.show(parse_event(line))
    return screen.getvalue()


def test_on_a_terminal_notes_begin_on_a_line_of_their_own():
    shown = write_down(Screen(), text("I look"), call(), text("It is", "m2"), done())
    assert shown == f"I look\n-> search {{}}\nIt is\ndone in 3.2 s, {FIGURES}\n"


def test_what_sub_agents_say_is_not_the_answer():
    assert write_down(io.StringIO(), text("aside", "m1", "helper"), text("Yes\n", "m2")) == "Yes\n"
