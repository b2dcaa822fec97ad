"""`svc rebuild`: recreates the processors' tables from the logs or from ClickHouse."""
