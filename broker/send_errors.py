"""Classifies errors of sends to Kafka. Pure."""

from enum import Enum
from typing import Final

from aiokafka import errors


class SendErrorKind(Enum):
    """The reaction to an error: retry, alert an operator, or send less."""

    UNAVAILABLE = "unavailable"
    """Kafka accepts no records at the moment. Every unknown error is of this kind: a retry loses nothing."""
    DENIED = "denied"
    """Credentials or rights are missing, until an operator fixes them."""
    TOO_LARGE = "too large"
    """The record exceeds the topic's size limit."""


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
    """The kind of an error that a send raised."""
    if isinstance(error, _TOO_LARGE):
        return SendErrorKind.TOO_LARGE
    return SendErrorKind.DENIED if isinstance(error, _DENIED) else SendErrorKind.UNAVAILABLE
