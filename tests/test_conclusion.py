"""The terminal chunk: what became of the turn, and its figures."""

from msgspec.structs import asdict

from shared.chunks import Cancelled, Done, Error
from shared.record import Failure
from shared.summary import CancelSummary, ErrorSummary, Summary
from tests.turns_made import claimed_turn
from worker.conclusion import CANCELLED, DONE, Account, Outcome
from worker.ending import Ending, decode_ending, encode_ending
from worker.tally import Tally

TURN = claimed_turn(created_at=1000, started_at=3500)
ACCOUNT = Account(TURN, Tally(chars=2), lambda: 4)
SUMMARY = Summary(elapsed_s=4, queued_s=2.5, chars=2, run_id=TURN.run_id)


def test_a_good_end_sums_the_turn_up() -> None:
    ending = ACCOUNT.conclude(DONE)
    assert ending == Ending(turn=TURN, chunk=Done(turn_id=TURN.turn_id, metadata=SUMMARY))
    assert (ending.outcome, ending.rolled_back_messages) == ("done", None)


def test_a_bad_end_says_why_as_well() -> None:
    failure = Failure("timeout", "Too long.")
    ending = ACCOUNT.conclude(Outcome(failure), 3)
    summary = ErrorSummary(**asdict(SUMMARY), rolled_back_messages=3, code="timeout")
    assert ending.chunk == Error(turn_id=TURN.turn_id, content="Too long.", metadata=summary)
    assert (ending.outcome, ending.failure, ending.rolled_back_messages) == ("error", failure, 3)


def test_a_cancelled_turn_says_what_was_taken_back() -> None:
    ending = ACCOUNT.conclude(CANCELLED, 3)
    summary = CancelSummary(**asdict(SUMMARY), rolled_back_messages=3)
    assert ending.chunk == Cancelled(turn_id=TURN.turn_id, metadata=summary)
    assert (ending.outcome, ending.failure, ending.rolled_back_messages) == ("cancelled", None, 3)


def test_an_end_is_the_same_after_it_was_stored() -> None:
    for outcome in (DONE, CANCELLED, Outcome(Failure("agent", "half a pair: \ufffd"))):
        ending = ACCOUNT.conclude(outcome, 1)
        assert decode_ending(encode_ending(ending)) == ending
