"""The schema of ClickHouse as numbered SQL files, and the function that applies them."""
