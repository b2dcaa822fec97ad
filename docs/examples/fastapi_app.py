"""A shop on FastAPI: `uvicorn fastapi_app:app`, with SVC_TOKEN and SVC_INGEST_URL set.

Starlette is watched the same way.
"""

from fastapi import FastAPI, Header, Request, Response

import svc.starlette

svc.init(release="shop@1.4.2+318")
app = FastAPI()
svc.starlette.watch(app)


@app.get("/orders/{number}")
async def order(number: int, x_user: str = Header("nobody")) -> str:
    """Order 7 is missing, order 8 cannot be paid."""
    svc.set_user({"id": x_user})
    svc.set_tag("order", str(number))
    svc.add_breadcrumb(f"order {number} looked up")
    if number == 7:
        raise LookupError("no such order")
    if number == 8:
        raise ConnectionError("the bank does not answer")
    return "hello"


@app.exception_handler(ConnectionError)
async def unavailable(_request: Request, _error: Exception) -> Response:
    """Answered here, and reported still: the status is 500 or more."""
    return Response("try again later\n", status_code=503)
