"""Programs that write pages and pictures of the documentation."""
