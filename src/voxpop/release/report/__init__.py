"""`report.html`: one page for whoever signs a release off; a function of the release and its plan alone.

| file | holds |
|---|---|
| `about_hitters.py` | the story of heavy hitters |
| `about_ngrams.py` | the story of an n-gram extraction |
| `about_sequences.py` | the story of a model of sequences |
| `about_union.py` | the story of a set union |
| `chances.py` | how likely something that so many users hold is released, from the numbers that a plan states |
| `page.py` | put the page together |
| `payload.py` | the grams of a report as text that any browser unpacks |
| `stories.py` | from a plan's public numbers to the story of its report |
| `story.py` | what a report tells of one mechanism |
| `words.py` | numbers as the report writes them |
| `palette.py` | the one palette |
| `compiled.py` | compiled templates, kept where Python keeps the compiled modules of this folder |
"""

from voxpop.release.report.page import REPORT, report_of

__all__ = ["REPORT", "report_of"]
