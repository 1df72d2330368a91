"""Voxpop: find what many people share, and release it with user-level differential privacy.

```python
import voxpop as vp

posts = vp.read("posts.parquet", user="author", text="body")
words = vp.SetUnion(limit=100).release(posts, vp.Budget(epsilon=4, delta=1e-7))
words.save("words")
```

Names are imported when first used, so that `import voxpop` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from voxpop import errors

if TYPE_CHECKING:
    from voxpop.corpus.corpus import Corpus
    from voxpop.corpus.loading import load_corpus
    from voxpop.counts.counts import Counts
    from voxpop.counts.top import Top
    from voxpop.hitters.heavy_hitters import HeavyHitters
    from voxpop.ledger.ledger import Ledger
    from voxpop.load_saved import load
    from voxpop.ngrams.ngrams import NGrams
    from voxpop.privacy.budget import Budget
    from voxpop.privacy.guarantee import Guarantee
    from voxpop.read_table import read
    from voxpop.release.ranking import Ranking
    from voxpop.release.release import Release
    from voxpop.release.tally import Tally
    from voxpop.sequences.model import SequenceModel
    from voxpop.sequences.sequences import Sequences
    from voxpop.union.set_union import SetUnion
    from voxpop.weighting.own import Weighting

    __version__: str

__all__ = [
    "Budget",
    "Corpus",
    "Counts",
    "Guarantee",
    "HeavyHitters",
    "Ledger",
    "NGrams",
    "Ranking",
    "Release",
    "SequenceModel",
    "Sequences",
    "SetUnion",
    "Tally",
    "Top",
    "Weighting",
    "__version__",
    "errors",
    "load",
    "load_corpus",
    "read",
]

_HOMES = {
    "Budget": "voxpop.privacy.budget",
    "Corpus": "voxpop.corpus.corpus",
    "Counts": "voxpop.counts.counts",
    "Guarantee": "voxpop.privacy.guarantee",
    "HeavyHitters": "voxpop.hitters.heavy_hitters",
    "Ledger": "voxpop.ledger.ledger",
    "NGrams": "voxpop.ngrams.ngrams",
    "Ranking": "voxpop.release.ranking",
    "Release": "voxpop.release.release",
    "SequenceModel": "voxpop.sequences.model",
    "Sequences": "voxpop.sequences.sequences",
    "SetUnion": "voxpop.union.set_union",
    "Tally": "voxpop.release.tally",
    "Top": "voxpop.counts.top",
    "Weighting": "voxpop.weighting.own",
    "load": "voxpop.load_saved",
    "load_corpus": "voxpop.corpus.loading",
    "read": "voxpop.read_table",
}


if not TYPE_CHECKING:  # type checkers know the names from above, and refuse all others

    def __getattr__(name: str) -> Any:
        """Import a public name on first use and keep it."""
        if name == "__version__":
            from voxpop.version import installed_version

            value: Any = installed_version()
        elif name in _HOMES:
            value = getattr(import_module(_HOMES[name]), name)
        else:
            raise AttributeError(f"module 'voxpop' has no attribute {name!r}; it has {', '.join(__all__)}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return list(__all__)
