"""A worker on Celery: `celery --app celery_app worker`, with SVC_TOKEN, SVC_INGEST_URL and BROKER set."""

import os

from celery import Celery

import svc.celery

svc.init(release="shop@1.4.2+318")
svc.celery.watch()
app = Celery("shop", broker=os.environ.get("BROKER", "memory://"))


@app.task(name="shop.pay")
def pay(number: int) -> str:
    """Order 7 cannot be paid."""
    svc.set_tag("order", str(number))
    svc.add_breadcrumb(f"order {number} is paid")
    if number == 7:
        raise TimeoutError("the bank does not answer")
    return "paid"
