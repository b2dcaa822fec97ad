"""The HTTP surface of the edge: server, endpoints, headers, bodies, answers."""
