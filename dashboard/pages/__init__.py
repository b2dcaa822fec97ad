"""The pages: HTML that works without JavaScript, a module per page."""
