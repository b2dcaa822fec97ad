"""The service's version, as it is installed."""

from importlib.metadata import PackageNotFoundError, version


def service_version() -> str:
    """Such as `0.2.0`; `unknown` where the distribution isn't installed."""
    try:
        return version("svc-service")
    except PackageNotFoundError:
        return "unknown"
