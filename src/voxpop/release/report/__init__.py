"""The report of a result, an HTML page for the person who approves it. It depends only on the result and its plan."""
