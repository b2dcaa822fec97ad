"""The query language (contract, section 4): text to a typed tree, the tree over one event, the tree as SQL.

Pure: no I/O, no clock. `docs/query-language.md` is its description for people.
"""
