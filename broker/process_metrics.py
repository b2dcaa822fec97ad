"""Metrics of every process: build information, CPU and memory."""

import platform

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector

from schemas.version import service_version


def set_build_info(gauge: Gauge) -> None:
    """1 under the running versions."""
    gauge.labels(service_version(), platform.python_version()).set(1)


def add_process_metrics(registry: CollectorRegistry) -> None:
    """CPU time, memory and files of this process, and its `svc_build_info`."""
    ProcessCollector(registry=registry)
    set_build_info(
        Gauge("svc_build_info", "Build information; always 1.", ["version", "python"], registry=registry)
    )
