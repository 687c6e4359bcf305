"""One thread for torch: a second one only gets in the way of networks this small."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_torch_thread():
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)
