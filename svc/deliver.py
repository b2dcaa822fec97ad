"""Blocking delivery, for tools that send existing events and need the outcome of each batch."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from svc.answers import Answer, Fate, RetryPolicy
from svc.upload import Uploader


@dataclass(frozen=True)
class Delivery:
    """A batch's outcome, the last answer, and the number of posts."""

    fate: Fate
    answer: Answer
    posts: int


def deliver(
    uploader: Uploader, events: Sequence[bytes], sleep: Callable[[float], None] = time.sleep
) -> Delivery:
    """Post one batch of encoded events under the retry rules of section 7; block until its outcome is known.

    After `Fate.DONE` rejected events are in `answer.errors`, each with its `index` in the batch.
    """
    policy, posts = RetryPolicy(), 0
    while True:
        answer = uploader.post(events)
        posts += 1
        decision = policy.after(answer)
        if decision.fate is not Fate.AGAIN:
            return Delivery(decision.fate, answer, posts)
        sleep(decision.wait)
