"""The tables: migrations, rollups, analysts' views and rights, and records as rows and columns."""
