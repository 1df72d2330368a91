"""Set union: release the items that many users hold."""
