"""`svc guest`: the requirements on Kafka, ClickHouse and Kubernetes of other teams."""
