"""The report of a result: one HTML page for the person who signs it off, a function of the result and its plan."""
