"""One thread for torch, as a second one slows networks this small."""

import pytest


@pytest.fixture(autouse=True)
def one_torch_thread():
    import torch  # not earlier: fast tests leave this folder out

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)
