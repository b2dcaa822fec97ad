"""`svc guest`: what the owners of Kafka, ClickHouse and Kubernetes are asked for."""
