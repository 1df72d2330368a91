"""A scikit-learn transformer with a private vocabulary: `from voxpop.exports.sklearn import PrivateVocabulary`."""

from typing import Any, final

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

import voxpop as vp
from voxpop.errors import InputError
from voxpop.exports.libraries import joined, to_count_vectorizer
from voxpop.privacy.planned import Account
from voxpop.reading.choices import TextTokenizer


@final
class PrivateVocabulary(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Count the words and phrases of documents that many users share.

    `fit` releases the vocabulary with user-level differential privacy. The counts that `transform` returns are as
    private as its documents, and so is a model that is trained on them.

    Args:
        epsilon: epsilon of the release.
        delta: delta of the release.
        max_length: number of tokens of the longest phrases.
        tokenizer: as for `voxpop.read`.

    Attributes:
        release_: the `voxpop.Release`, with the guarantee.
    """

    def __init__(
        self, epsilon: float = 1.0, delta: float = 1e-8, max_length: int = 1, tokenizer: TextTokenizer = "words"
    ) -> None:
        self.epsilon, self.delta, self.max_length, self.tokenizer = epsilon, delta, max_length, tokenizer

    def fit(self, X: Any, y: Any = None, users: Any = None, ledger: Account | None = None) -> "PrivateVocabulary":  # noqa: N803
        """Release the vocabulary of documents.

        Args:
            X: texts.
            y: ignored.
            users: the user of each text, who is protected with all texts.
            ledger: the account to charge; see `voxpop.Ledger`.

        Raises:
            InputError: If `users` is missing.
        """
        if users is None:
            raise InputError(
                "users= must name the user of each document, such as fit(texts, users=authors), or in a pipeline "
                "fit(texts, STEP__users=authors). Give range(len(texts)) if no two documents have the same user."
            )
        data = vp.read({"user": users, "text": X}, user="user", text="text", tokenizer=self.tokenizer)
        mechanism = vp.SetUnion() if self.max_length == 1 else vp.NGrams(max_length=self.max_length)
        self.release_ = mechanism.release(data, vp.Budget(self.epsilon, self.delta), ledger=ledger)
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Return a sparse matrix with a row for each document and the count of each released phrase."""
        check_is_fitted(self)
        if not len(self.release_):
            return csr_matrix((len(X), 0), dtype=np.int64)
        return to_count_vectorizer(self.release_, self.tokenizer).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the released phrases, with spaces between their tokens."""
        check_is_fitted(self)
        return np.array(joined(self.release_, "a vocabulary"), object)

    def __sklearn_tags__(self) -> Any:
        """Return that the input is texts, and that noise differs from run to run."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.non_deterministic = True
        return tags
