"""The pages: HTML that reads without JavaScript, one module a page."""
