"""What is asked and answered in chaos: every turn has a text of its own, and the answer follows
from the text alone, whoever asks and how often.
"""

from random import Random

from tests.fake_llama import Reply
from tests.fake_llama.script import Body
from tests.traceless.dialogue import Dialogue, Replies, Tool, calls, delegate, note, todo, write

PROBE = "Where are we?"
"""It shows the model all that the thread knows."""

WORDS = "so it is said, and any of these words may be the last that is heard in its day."
SPEEDS = [40, 150, 1000]
"""Tokens per second, of some twenty: often enough a strike comes in the middle."""


def text_of(number: int) -> str:
    """What turn so-and-so is asked."""
    return f"Do number {number}."


class Script(Dialogue):
    """`asked`: the turns in the order in which the model was first asked for each."""

    def __init__(self, seed: int) -> None:
        super().__init__({PROBE: [calls(("ls", {"path": "/"})), Reply("Here.")]})
        self.asked: list[str] = []
        self._seen = set[str]()
        self._seed = seed

    def learn_turn(self, number: int) -> str:
        """What the model will say in this turn; answers what it is asked."""
        text, random = text_of(number), Random(f"{self._seed} {number}")
        help_text = f"Help with number {number}."
        self.learn(
            {
                text: _say(random, number, [delegate(help_text)]),
                help_text: _say(random, number, []),
            }
        )
        return text

    def __call__(self, body: Body) -> Reply:
        for message in body["messages"][1:]:
            if message["role"] == "user" and message["content"] not in self._seen:
                self._seen.add(message["content"])
                self.asked.append(message["content"])
        return super().__call__(body)


def _say(random: Random, number: int, more: list[Tool]) -> Replies:
    rounds = [calls(*_tools(random, number, more)) for _ in range(random.choice([0, 1, 1, 2]))]
    return [*rounds, Reply(f"{number}: {WORDS}", decode_tps=random.choice(SPEEDS))]


def _tools(random: Random, number: int, more: list[Tool]) -> list[Tool]:
    tools = [
        note(f"{number} noted"),
        ("rest", {"what": str(random.randint(1, 60))}),
        todo(f"Do what comes after {number}."),
        write(f"{number}, {random.random()}\n"),
        *more,
    ]
    return random.sample(tools, random.randint(1, 3))
