"""The floor of the pipeline: the same way from POST to row and issue in a fixed, minimal form, on the same libraries.

It validates less, knows ten tokens from its environment, has six rollups and no repair, no limits and no second try. It is not to be made faster: what the product
costs is told against it.
"""
