"""A scikit-learn transformer with a private vocabulary.

Import it with `from voxpop.exports.sklearn import PrivateVocabulary`.
"""

import os
import warnings
from typing import Any, final

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

import voxpop as vp
from voxpop.errors import InputError
from voxpop.exports.libraries import joined_grams, to_count_vectorizer
from voxpop.privacy.composition import total_of
from voxpop.privacy.planned import Account
from voxpop.reading.choices import TextTokenizer


@final
class PrivateVocabulary(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Count, in documents, the words and phrases that many users share.

    `fit` releases the vocabulary with user-level differential privacy. The counts that `transform` returns have no
    guarantee. The counts are as sensitive as the documents, and so is a model that is trained on the counts.

    Args:
        epsilon: The epsilon of the release.
        delta: The delta of the release.
        max_length: The maximum number of tokens per phrase.
        tokenizer: The tokenizer of `voxpop.read`.
        min_users: The number of users below which a word is released with a probability of at most 1e-6. By default,
            there is no minimum. This option requires a `max_length` of 1.
        ledger: The account to charge for every fit, as returned by `voxpop.Ledger`.
        seed: A seed that makes the release reproducible and NOT private, for tests.

    Warns:
        UserWarning: If copies of one estimator have already released vocabularies, as in model selection. Each fit is a
            release about the same users, so the budgets add up. Fit one vocabulary first, and select the model on its
            counts.

    Attributes:
        release_: The `voxpop.Release` with its guarantee.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-8,
        max_length: int = 1,
        tokenizer: TextTokenizer = "words",
        min_users: int | None = None,
        ledger: Account | None = None,
        seed: int | None = None,
    ) -> None:
        self.epsilon, self.delta, self.max_length, self.tokenizer = epsilon, delta, max_length, tokenizer
        self.min_users, self.ledger, self.seed = min_users, ledger, seed

    def __sklearn_clone__(self) -> "PrivateVocabulary":
        """Return an unfitted copy that shares the ledger and the number of fits with this estimator."""
        values = self.get_params(deep=False)
        ledger = values.pop("ledger")  # A copy of an account is the same account.
        copy = type(self)(**{name: clone(each, safe=False) for name, each in values.items()}, ledger=ledger)
        copy._fits = self._counter
        return copy

    @property
    def _counter(self) -> list[int]:
        """The number of releases of this estimator and its copies, and the process that counts them."""
        if "_fits" not in self.__dict__:
            self._fits = [0, os.getpid()]
        return self._fits

    def fit(self, X: Any, y: Any = None, users: Any = None) -> "PrivateVocabulary":  # noqa: N803
        """Release the vocabulary of the documents.

        Args:
            X: The texts.
            y: Ignored.
            users: The user of each text. The guarantee protects each user with all their texts.

        Raises:
            InputError: If `users` is missing, or `min_users` is given for phrases.
        """
        if users is None:
            raise InputError(
                "users= must name the user of each document, such as fit(texts, users=authors), or in a pipeline "
                "fit(texts, STEP__users=authors). Give range(len(texts)) if no two documents have the same user."
            )
        data = vp.read({"user": users, "text": X}, user="user", text="text", tokenizer=self.tokenizer)
        if self.max_length > 1 and self.min_users is not None:
            raise InputError("`min_users` needs max_length=1, because phrases have no such bound. Remove it.")
        mechanism: Any = vp.NGrams(max_length=self.max_length)
        if self.max_length == 1:
            mechanism = vp.Items(min_users=self.min_users)
        self.release_ = mechanism.release(data, vp.Budget(self.epsilon, self.delta), ledger=self.ledger, seed=self.seed)
        self._count()
        return self

    def _count(self) -> None:
        self._counter[0] += 1
        releases, process = self._counter
        if process != os.getpid() and self.seed is None:
            warnings.warn(
                "a copy of an estimator was fitted in another process, such as in a model selection with `n_jobs`. "
                f"Each fit is a release, and this process has counted only {releases}. Fit PrivateVocabulary "
                "once, and select the model on its counts.",
                stacklevel=3,
            )
        elif releases > 1 and self.seed is None:
            each = self.release_.guarantee
            total = total_of([(each, None)] * releases)
            warnings.warn(
                f"{releases} vocabularies were released by copies of one estimator, such as in a model selection. If "
                f"they are about the same people, the total is {total}. Fit PrivateVocabulary once, and select the "
                "model on its counts.",
                stacklevel=3,
            )

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Return a sparse matrix with a row for each document and the count of each released phrase."""
        check_is_fitted(self)
        if not len(self.release_):
            return csr_matrix((len(X), 0), dtype=np.int64)
        return to_count_vectorizer(self.release_, self.tokenizer).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the released phrases, with spaces between their tokens."""
        check_is_fitted(self)
        return np.array(joined_grams(self.release_, "a vocabulary"), object)

    def __sklearn_tags__(self) -> Any:
        """Return tags that declare that the input consists of texts and that results are random."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.non_deterministic = True
        return tags
