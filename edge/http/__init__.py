"""The edge's HTTP interface: server, routing, endpoints, requests and responses."""
