"""The report of a result, an HTML page for the person who approves it, computed from the result and its plan only."""
