"""Delivery that waits: for tools that send what they have and want to know what became of it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from svc.answers import Answer, Fate, RetryPolicy
from svc.upload import Uploader


@dataclass(frozen=True)
class Delivery:
    """What became of a batch: its fate, the last answer, and how often it was posted."""

    fate: Fate
    answer: Answer
    posts: int


def deliver(
    uploader: Uploader, events: Sequence[bytes], sleep: Callable[[float], None] = time.sleep
) -> Delivery:
    """Post one batch of encoded events under the retry rules of section 7 and block until its fate is known.

    `Fate.DONE` can come with rejected events in `answer.errors`, each with its `index` in the batch.
    """
    policy, posts = RetryPolicy(), 0
    while True:
        answer = uploader.post(events)
        posts += 1
        verdict = policy.after(answer)
        if verdict.fate is not Fate.AGAIN:
            return Delivery(verdict.fate, answer, posts)
        sleep(verdict.wait)
