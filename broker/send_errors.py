"""What an error of a send to Kafka means for the record, the producer and whoever operates it. Pure."""

from enum import Enum
from typing import Final

from aiokafka import errors


class SendErrorKind(Enum):
    """The three answers to an error: try again by itself, tell a person, or send something smaller."""

    UNAVAILABLE = "unavailable"
    """Kafka can't take records now. Also the kind of every error that isn't known: nothing is lost by trying again."""
    DENIED = "denied"
    """Credentials or rights are missing: it ends when a person mends them."""
    TOO_LARGE = "too large"
    """This record, or this batch of one, exceeds the limit of the topic."""


_DENIED: Final = (
    errors.AuthenticationFailedError,
    errors.AuthenticationMethodNotSupported,
    errors.ClusterAuthorizationFailedError,
    errors.DelegationTokenAuthDisabled,
    errors.DelegationTokenAuthorizationFailed,
    errors.DelegationTokenExpired,
    errors.DelegationTokenNotFound,
    errors.DelegationTokenOwnerMismatch,
    errors.DelegationTokenRequestNotAllowed,
    errors.GroupAuthorizationFailedError,
    errors.IllegalSaslStateError,
    errors.SaslAuthenticationFailed,
    errors.SecurityDisabled,
    errors.TopicAuthorizationFailedError,
    errors.TransactionalIdAuthorizationFailed,
    errors.UnsupportedSaslMechanismError,
)
_TOO_LARGE: Final = (
    errors.MessageSizeTooLargeError,
    errors.RecordListTooLargeError,
    errors.RecordTooLargeError,
)


def kind_of(error: BaseException) -> SendErrorKind:
    """The kind of anything that a send raised."""
    if isinstance(error, _TOO_LARGE):
        return SendErrorKind.TOO_LARGE
    return SendErrorKind.DENIED if isinstance(error, _DENIED) else SendErrorKind.UNAVAILABLE
