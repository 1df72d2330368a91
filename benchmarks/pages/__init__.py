"""What writes pages and pictures of the documentation."""
