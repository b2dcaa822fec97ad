"""What grouping has learnt of a project, in words. Pure."""

from typing import Final

from msgspec import Struct

from dashboard.view.text import plural
from grouping.fingerprint.learnt import SLOT
from schemas.projects import LearntFact


class SentencePiece(Struct, frozen=True):
    """A part of a sentence; code comes from events, so it can be any text. Bold is the `<*>` of which the sentence speaks."""

    text: str
    is_code: bool = False
    is_bold: bool = False


class LearntSentence(Struct, frozen=True):
    """A learnt fact, and what follows of it."""

    pieces: tuple[SentencePiece, ...]
    hint: str


HINTS: Final = {
    "helper": "Callers and messages tell its problems apart too.",
    "varies": "That word doesn't count.",
    "telling": "Where one of them stands there, it counts.",
}


def learnt_sentence(fact: LearntFact) -> LearntSentence:
    """The sentence of a learnt fact."""
    match fact.kind:
        case "helper":
            seen = f"{plural(fact.callers, 'caller')}, {plural(fact.messages, 'message')}"
            pieces = [_code(fact.text), _words(f" is a helper here: {seen}")]
        case "varies":
            slot = " ".join(fact.text.split(" ")[: fact.at]).count(SLOT)
            pieces = [
                *_template(fact.text, slot),
                _words(f" a word varies: {plural(fact.messages, 'value')}"),
            ]
        case "telling":
            values = [piece for value in fact.values for piece in (_words(", "), _code(value))]
            pieces = [*_template(fact.text, fact.at), _words(" the values "), *values[1:]]
            pieces.append(_words(" tell problems apart"))
    return LearntSentence(tuple(pieces), HINTS[fact.kind])


def _template(template: str, slot: int) -> list[SentencePiece]:
    """The template with the slot of this number in bold."""
    texts = template.split(SLOT)
    before, after = SLOT.join(texts[: slot + 1]), SLOT.join(texts[slot + 1 :])
    pieces = [_code(before), SentencePiece(SLOT, is_code=True, is_bold=True), _code(after)]
    return [_words("In "), *(piece for piece in pieces if piece.text)]


def _words(text: str) -> SentencePiece:
    return SentencePiece(text)


def _code(text: str) -> SentencePiece:
    return SentencePiece(text, is_code=True)
