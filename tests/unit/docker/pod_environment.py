"""The environment that a pod of the chart gives its process, with files in a folder of this machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.unit.docker.test_chart import pods


def environments(
    objects: list[dict[str, Any]], secrets: Mapping[str, str], folder: Path
) -> dict[str, dict[str, str]]:
    """By process. `secrets` are the values of all keys, of any Secret."""
    maps = {one["metadata"]["name"]: one["data"] for one in objects if one["kind"] == "ConfigMap"}
    found = {}
    for process, pod in pods(objects):
        [container] = pod["containers"]
        environ: dict[str, str] = dict(maps[container["envFrom"][0]["configMapRef"]["name"]])
        environ |= {one["name"]: one.get("value", process) for one in container["env"]}
        here = folder / process
        (here / "secrets").mkdir(parents=True)
        for volume in pod["volumes"]:
            for item in volume.get("secret", {}).get("items", ()):
                (here / "secrets" / item["path"]).write_text(secrets[item["key"]])
        found[process] = {
            name: value.replace("/secrets/", f"{here}/secrets/").replace("/data", str(here))
            for name, value in environ.items()
        }
    return found
