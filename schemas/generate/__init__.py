"""Documents generated from the declarations: reference pages and JSON Schemas."""
