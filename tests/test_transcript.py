"""A turn as it is written down, on a terminal and elsewhere."""

import io

import pytest

from api.client.event import parse_event
from api.client.transcript import Transcript
from shared.chunks import Chunk, RewindReason
from tests.client_made import rewind
from tests.fake_api import TURN, numbered
from tests.terminal import FIGURES, call, done, queued, text

LOST = "the worker was lost, the turn goes on"


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


def test_a_place_is_told_when_it_changes():
    shown = write_down(io.StringIO(), queued(1), queued(1), queued(0), queued(0), text("Yes\n"))
    assert shown == f"turn {TURN}: 1 turn ahead\nturn {TURN}: 0 turns ahead\nYes\n"


def replaced(words: str) -> str:
    return f'{LOST}; what follows replaces the answer from "{words}" on'


def test_what_replaces_void_text_begins_on_a_new_line_below_a_note():
    again = text("It is Friday."), done()
    shown = write_down(Screen(), queued(0), text("It is Tues"), rewind(1), queued(0), *again)
    assert shown.splitlines() == [
        f"turn {TURN}: 0 turns ahead",
        "It is Tues",
        replaced("It is Tues"),
        f"turn {TURN}: 0 turns ahead",
        "It is Friday.",
        f"done in 3.2 s, {FIGURES}",
    ]


def test_the_line_ends_also_where_notes_go_elsewhere():
    answer, notes = io.StringIO(), io.StringIO()
    transcript = Transcript(answer, notes)
    for line in numbered(text("It is Tues"), rewind(0), text("It is Friday.")):
        transcript.show(parse_event(line))
    assert answer.getvalue() == "It is Tues\nIt is Friday."
    assert notes.getvalue() == f"{replaced('It is Tues')}\n"


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("worker_lost", "the worker was lost"),
        ("worker_stopped", "the worker was stopped"),
    ],
)
def test_it_says_what_broke_the_turn_off(reason: RewindReason, told: str):
    assert write_down(Screen(), rewind(0, reason)) == f"{told}, the turn goes on\n"


@pytest.mark.parametrize("to_seq", [1, 3])
def test_text_that_stands_is_not_said_to_be_replaced(to_seq: int):
    said = text("It stands."), call(), text("aside", "m2", "helper")
    assert f"\n{LOST}\n" in write_down(Screen(), *said, rewind(to_seq))


@pytest.mark.parametrize(
    ("to_seq", "words"),
    [(0, "I look it up. It is Tuesday."), (1, "it up. It is Tuesday."), (2, "It is Tuesday.")],
)
def test_void_text_is_found_by_its_first_words(to_seq: int, words: str):
    said = text("I look "), text("it up."), text("It is ", "m2"), text("Tuesday.", "m2")
    assert f"\n{replaced(words)}\n" in write_down(Screen(), *said, rewind(to_seq))


def test_of_long_void_text_little_is_quoted():
    shown = write_down(Screen(), text("so it goes on and on " * 9), rewind(0))
    assert shown.endswith(f"\n{replaced('so it goes on and on so it goes on an...')}\n")


def test_each_rewind_tells_only_of_what_has_become_void_since():
    first, second = (text("One", "m1"), rewind(0)), (text("Two", "m1"), rewind(0))
    shown = write_down(Screen(), *first, rewind(0), *second, text("Three", "m1"), rewind(6))
    notes = [replaced("One"), replaced("Two"), LOST]  # of what is said twice running, one
    assert [line for line in shown.splitlines() if line.startswith(LOST)] == notes
    assert [line for line in shown.splitlines() if line not in notes] == ["One", "Two", "Three"]
