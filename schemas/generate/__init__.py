"""Documents generated from the declarations: reference pages, JSON Schemas and OpenAPI documents."""
