"""The tables of the processors, made anew from the logs or from ClickHouse, while the processors are stopped."""
