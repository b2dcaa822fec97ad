"""HTTP below the API and the pages: server, inputs, errors, headers, health."""
