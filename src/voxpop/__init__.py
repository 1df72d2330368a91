"""Voxpop: find what many people share, and release it with user-level differential privacy.

```python
import voxpop as vp

posts = vp.read("posts.parquet", user="author", text="body")
words = vp.Items(max_items_per_user=100).release(posts, vp.Budget(epsilon=4, delta=1e-7))
words.save("words")
```

Each public name is imported on first use, so `import voxpop` takes almost no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from voxpop import errors as errors

if TYPE_CHECKING:
    from voxpop import exports as exports
    from voxpop import papers as papers
    from voxpop.engine.data import Corpus as Corpus
    from voxpop.engine.local.corpus import load_corpus as load_corpus
    from voxpop.engine.read import read as read
    from voxpop.ledger.ledger import Ledger as Ledger
    from voxpop.mechanisms.heavy_hitters.mechanism import HeavyHitters as HeavyHitters
    from voxpop.mechanisms.ngrams.mechanism import NGrams as NGrams
    from voxpop.mechanisms.profile.mechanism import KeyCounts as KeyCounts
    from voxpop.mechanisms.profile.mechanism import ProfileMechanism as ProfileMechanism
    from voxpop.mechanisms.profile.mechanism import profile as profile
    from voxpop.mechanisms.sequences.mechanism import Sequences as Sequences
    from voxpop.mechanisms.sequences.model import SequenceModel as SequenceModel
    from voxpop.mechanisms.set_union.mechanism import Items as Items
    from voxpop.privacy.budget import Budget as Budget
    from voxpop.privacy.guarantee import Guarantee as Guarantee
    from voxpop.reading.databases import SQL as SQL
    from voxpop.reading.text_files import CSV as CSV
    from voxpop.reading.wanted import ReadOptions as ReadOptions
    from voxpop.reading.wanted import Tokenizer as Tokenizer
    from voxpop.release import known as known
    from voxpop.release.counts import Counts as Counts
    from voxpop.release.counts import Top as Top
    from voxpop.release.profile import Profile as Profile
    from voxpop.release.questions import compare as compare
    from voxpop.release.questions import evaluate as evaluate
    from voxpop.release.release import Release as Release
    from voxpop.release.result import Report as Report
    from voxpop.release.result import Result as Result
    from voxpop.release.result import load as load

    __version__: str

_HOMES = {
    "CSV": "voxpop.reading.text_files",
    "SQL": "voxpop.reading.databases",
    "ReadOptions": "voxpop.reading.wanted",
    "Tokenizer": "voxpop.reading.wanted",
    "Budget": "voxpop.privacy.budget",
    "Corpus": "voxpop.engine.data",
    "Guarantee": "voxpop.privacy.guarantee",
    "HeavyHitters": "voxpop.mechanisms.heavy_hitters.mechanism",
    "KeyCounts": "voxpop.mechanisms.profile.mechanism",
    "Ledger": "voxpop.ledger.ledger",
    "NGrams": "voxpop.mechanisms.ngrams.mechanism",
    "Profile": "voxpop.release.profile",
    "ProfileMechanism": "voxpop.mechanisms.profile.mechanism",
    "Top": "voxpop.release.counts",
    "Release": "voxpop.release.release",
    "Report": "voxpop.release.result",
    "Result": "voxpop.release.result",
    "SequenceModel": "voxpop.mechanisms.sequences.model",
    "Sequences": "voxpop.mechanisms.sequences.mechanism",
    "Items": "voxpop.mechanisms.set_union.mechanism",
    "Counts": "voxpop.release.counts",
    "compare": "voxpop.release.questions",
    "evaluate": "voxpop.release.questions",
    "load": "voxpop.release.result",
    "load_corpus": "voxpop.engine.local.corpus",
    "profile": "voxpop.mechanisms.profile.mechanism",
    "read": "voxpop.engine.read",
}
_PACKAGES = {
    "exports": "voxpop.exports",
    "known": "voxpop.release.known",
    "papers": "voxpop.papers",
}
__all__ = sorted([*_HOMES, *_PACKAGES, "__version__", "errors"])


if not TYPE_CHECKING:  # Type checkers accept the names that are imported above, and reject all other names.

    def __getattr__(name: str) -> Any:
        """Import a public name on first use and cache it."""
        if name == "__version__":
            from importlib import metadata

            value: Any = metadata.version("voxpop")
        elif name in _PACKAGES:
            value = import_module(_PACKAGES[name])
        elif name in _HOMES:
            value = getattr(import_module(_HOMES[name]), name)
        else:
            raise AttributeError(f"module 'voxpop' has no attribute {name!r}; it has {', '.join(__all__)}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return list(__all__)
