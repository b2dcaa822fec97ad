"""The floor of the pipeline: the same way from POST to row and issue in a minimal form, on the same libraries.

It decodes an event strictly, knows its tokens from its environment, has six rollups and no repair, no limits
and no second try. Don't make it faster: the product's cost is compared with it.
"""
