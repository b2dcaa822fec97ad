"""HTTP below the API and the pages: server, input, responses, errors, headers, health."""
