"""A shop on Flask: `flask --app flask_app run`, with SVC_TOKEN and SVC_INGEST_URL set."""

from flask import Flask, request

import svc.flask

svc.init(release="shop@1.4.2+318")
app = Flask(__name__)
svc.flask.watch(app)


@app.get("/orders/<int:number>")
def order(number: int) -> str:
    """Order 7 is missing."""
    svc.set_user({"id": request.headers.get("X-User", "nobody")})
    svc.set_tag("order", str(number))
    svc.add_breadcrumb(f"order {number} looked up")
    if number == 7:
        raise LookupError("no such order")
    return "hello\n"
