"""The report of a result, an HTML page for the person who approves it.

The report depends only on the result and its plan.
"""
