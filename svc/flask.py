"""Flask: it answers 500 by itself, so that no error reaches a middleware around it; its signal tells of each."""

from typing import Any, Final

from flask import Flask, got_request_exception, request

from svc.reporting import never_raises
from svc.web import Describe, WsgiMiddleware, report

_NAME: Final = "svc"


@never_raises(None)
def watch(app: Flask, describe: Describe | None = None) -> None:
    """Report what the application lets escape, once, and give each request a scope of its own."""
    if _NAME in app.extensions:
        return

    def failed(_app: Flask, exception: BaseException, **_: Any) -> None:
        report(exception, request.environ, describe)

    app.extensions[_NAME] = failed
    got_request_exception.connect(failed, app, weak=False)
    # What escapes after Flask has answered (a streamed body), and the scope.
    replaceable: Any = app
    replaceable.wsgi_app = WsgiMiddleware(app.wsgi_app, describe)
