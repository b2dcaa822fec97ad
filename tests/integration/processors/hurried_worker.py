"""A worker that waits 3 s, instead of 30, for what a predecessor may still have under way to `grouped`."""

from cli import processors
from processors.grouper import grouped_tail


def main() -> None:
    """`svc processors`, changed."""
    vars(grouped_tail)["PRODUCER_TIMEOUT_SECONDS"] = 3.0
    processors.command()


if __name__ == "__main__":
    main()
