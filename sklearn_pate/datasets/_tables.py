"""Tables of text, converted to arrays or dataframes."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Table"]


class Table:
    """Columns of text as read from a file; those not in `numeric` hold categories.

    `categories` lists those of each categorical column in order of first appearance.
    """

    def __init__(
        self, columns: dict[str, Sequence[str]], numeric: Collection[str]
    ) -> None:
        self._columns = columns
        self.categories = {
            name: list(dict.fromkeys(values))
            for name, values in columns.items()
            if name not in numeric
        }

    def to_array(self) -> NDArray[np.float64]:
        """Return numbers; a category is its position in `categories`."""
        return np.column_stack(
            [self._numbers(name, values) for name, values in self._columns.items()]
        )

    def _numbers(self, name: str, values: Sequence[Any]) -> NDArray[np.float64]:
        if name in self.categories:
            code = {category: i for i, category in enumerate(self.categories[name])}
            values = [code[value] for value in values]
        return np.array(values, dtype=np.float64)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame of int64 and categorical columns."""
        import pandas as pd

        return pd.DataFrame(
            {
                name: pd.Categorical(values, categories=self.categories[name])
                if name in self.categories
                else np.array(values, dtype=np.int64)
                for name, values in self._columns.items()
            }
        )
