"""A shop on Django in one file: `python django_app.py runserver`, with SVC_TOKEN and SVC_INGEST_URL set."""

import os
import sys

from django.conf import settings
from django.core.management import execute_from_command_line
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path

import svc

svc.init(release="shop@1.4.2+318")
settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SECRET_KEY=os.environ.get("SECRET_KEY", "for trying it out"),
    MIDDLEWARE=["svc.django.middleware", "django.middleware.common.CommonMiddleware"],
)


def order(request: HttpRequest, number: int) -> HttpResponse:
    """Order 7 is missing."""
    svc.set_user({"id": request.headers.get("X-User", "nobody")})
    svc.set_tag("order", str(number))
    svc.add_breadcrumb(f"order {number} looked up")
    if number == 7:
        raise LookupError("no such order")
    return HttpResponse("hello\n")


urlpatterns = [path("orders/<int:number>", order)]
application = get_wsgi_application()

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
