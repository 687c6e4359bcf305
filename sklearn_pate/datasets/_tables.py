"""Tables of text: numbers, and categories as integers or as pandas has them."""

import numpy as np

__all__ = ["Table"]


class Table:
    """Columns of text as read from a file.

    Categories are numbered in the order of their first appearance.

    Parameters
    ----------
    columns : dict of str to sequence of str
        Every column has the same length.

    numeric : collection of str
        Columns that hold numbers; the others hold categories.

    Attributes
    ----------
    categories : dict of str to list of str
        Categories of each categorical column, in order of appearance.
    """

    def __init__(self, columns, numeric):
        self._columns = columns
        self.categories = {
            name: list(dict.fromkeys(values))
            for name, values in columns.items()
            if name not in numeric
        }

    def to_array(self):
        """Return numbers; a category is its position in `categories`.

        Returns
        -------
        data : ndarray of shape (n_rows, n_columns), dtype float64
            One column of numbers for each column.
        """
        return np.column_stack(
            [self._numbers(name, values) for name, values in self._columns.items()]
        )

    def _numbers(self, name, values):
        if name in self.categories:
            code = {category: i for i, category in enumerate(self.categories[name])}
            values = [code[value] for value in values]
        return np.array(values, dtype=np.float64)

    def to_frame(self):
        """Return a pandas DataFrame.

        Returns
        -------
        data : DataFrame of shape (n_rows, n_columns)
            With int64 and categorical columns.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                name: pd.Categorical(values, categories=self.categories[name])
                if name in self.categories
                else np.array(values, dtype=np.int64)
                for name, values in self._columns.items()
            }
        )
