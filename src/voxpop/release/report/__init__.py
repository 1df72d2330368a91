"""`report.html`: one page for whoever signs a release off; a function of the release and its plan alone."""

from voxpop.release.report.page import REPORT, report_of

__all__ = ["REPORT", "report_of"]
