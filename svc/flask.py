"""Flask handles exceptions itself, so WSGI middleware never sees them; its signal reports each."""

from typing import Any, Final

from flask import Flask, got_request_exception, request

from svc.reporting import never_raises
from svc.web import Describe, WsgiMiddleware, report

_NAME: Final = "svc"


@never_raises(None)
def watch(app: Flask, describe: Describe | None = None) -> None:
    """Report each unhandled error once and give each request its own scope."""
    if _NAME in app.extensions:
        return

    def failed(_app: Flask, exception: BaseException, **_: Any) -> None:
        report(exception, request.environ, describe)

    app.extensions[_NAME] = failed
    got_request_exception.connect(failed, app, weak=False)
    # For the scope, and for errors after Flask has answered (a streamed body).
    replaceable: Any = app
    replaceable.wsgi_app = WsgiMiddleware(app.wsgi_app, describe)
