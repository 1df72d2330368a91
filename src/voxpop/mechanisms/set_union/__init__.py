"""Set union, which releases the items that many users share."""
