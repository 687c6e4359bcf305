"""The digest by which sites compare their public rows."""

import numpy as np
import pandas as pd
import scipy.sparse as sp

from tests.private import digest_of_rows

ROWS = np.arange(12.0).reshape(3, 4)


def test_other_public_rows_have_another_digest():
    frame = pd.DataFrame(ROWS, columns=[*"abcd"])
    every = [
        ROWS,
        ROWS.reshape(4, 3),
        ROWS[::-1],
        np.nextafter(ROWS, 99),
        ROWS.astype(np.float32),
        sp.csr_array(ROWS),
        sp.csr_array(ROWS.reshape(4, 3)),
        frame,
        frame.rename(columns={"a": "e"}),
        frame[[*"bacd"]],
        frame.astype(str),
    ]
    digests = [digest_of_rows(one) for one in every]
    assert len({*digests}) == len(every)
    assert digests == [digest_of_rows(one.copy()) for one in every]
