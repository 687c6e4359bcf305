"""References of a privacy report."""

from typing import Any

from sklearn_pate.accounting._assumptions import ROW_BY_ROW

__all__ = ["PROOFS", "sources_of"]

PROOFS = (
    'The proofs are on the page "Privacy cost of an answer" of the documentation of '
    'sklearn_pate; for answers, in its section "Exact cost of adaptive answers".'
)
_PROFILE = (
    (
        "Balle, Barthe, Gaboardi (2018). Privacy amplification by subsampling: tight "
        "analyses via couplings and divergences. (Privacy profiles; guesses.)",
        "https://arxiv.org/abs/1807.01647",
    ),
    (
        "Dong, Roth, Su (2022). Gaussian differential privacy. (False alarms and "
        "detections; Gaussian noise.)",
        "https://arxiv.org/abs/1905.02383",
    ),
    (
        "Vadhan (2017). The complexity of differential privacy. (Several rows "
        "together.)",
        "https://doi.org/10.1007/978-3-319-57048-8_7",
    ),
)
_RENYI = (
    (
        "Mironov (2017). Renyi differential privacy.",
        "https://arxiv.org/abs/1702.07476",
    ),
    (
        "Canonne, Kamath, Steinke (2020). The discrete Gaussian for differential "
        "privacy. (Noise in whole numbers; from Renyi curves to epsilon.)",
        "https://arxiv.org/abs/2004.00010",
    ),
    (
        "Asoodeh, Liao, Calmon, Kosut, Sankar (2021). Three variants of differential "
        "privacy: lossless conversion and applications. (From Renyi curves to privacy "
        "profiles.)",
        "https://arxiv.org/abs/2008.06529",
    ),
)
_PATE = (
    (
        "Papernot, Abadi, Erlingsson, Goodfellow, Talwar (2017). Semi-supervised "
        "knowledge transfer for deep learning from private training data.",
        "https://arxiv.org/abs/1610.05755",
    ),
    (
        "Papernot, Song, Mironov, Raghunathan, Talwar, Erlingsson (2018). Scalable "
        "private learning with PATE.",
        "https://arxiv.org/abs/1802.08908",
    ),
)
_OF_KIND: dict[str, tuple[tuple[str, str], ...]] = {
    "teachers": _PATE,
    "parties": _PATE,
    "scores": (
        (
            "Nissim, Raskhodnikova, Smith (2007). Smooth sensitivity and sampling in "
            "private data analysis.",
            "https://doi.org/10.1145/1250790.1250803",
        ),
        (
            "Biswas, Dong, Kamath, Ullman (2020). CoinPress: practical private mean "
            "and covariance estimation.",
            "https://arxiv.org/abs/2006.06618",
        ),
    ),
    "newton": (
        (
            "Ganesh, Haghifam, Steinke, Thakurta (2023). Faster differentially private "
            "convex optimization via second-order methods.",
            "https://arxiv.org/abs/2305.13209",
        ),
        (
            "Amid, Ganesh, Mathews, Ramaswamy, Song, Steinke, Suriyakumar, Thakkar, "
            "Thakurta (2022). Public data-assisted mirror descent for private model "
            "training.",
            "https://arxiv.org/abs/2112.00193",
        ),
    ),
    "sums": (),
    "neighbours": (
        (
            "Zhu, Yu, Chandraker, Wang (2020). Private-kNN: practical differential "
            "privacy for computer vision.",
            "https://openaccess.thecvf.com/content_CVPR_2020/html/"
            "Zhu_Private-kNN_Practical_Differential_Privacy_for_Computer_Vision_"
            "CVPR_2020_paper.html",
        ),
        (
            "Mironov, Talwar, Zhang (2019). Renyi differential privacy of the sampled "
            "Gaussian mechanism.",
            "https://arxiv.org/abs/1908.10530",
        ),
    ),
    "counts": (
        (
            "Vaidya, Shafiq, Basu, Hong (2013). Differentially private naive Bayes "
            "classification.",
            "https://doi.org/10.1109/WI-IAT.2013.80",
        ),
    ),
    "search": (
        (
            "Liu, Talwar (2019). Private selection from private candidates.",
            "https://arxiv.org/abs/1811.07971",
        ),
        (
            "Papernot, Steinke (2022). Hyperparameter tuning with Renyi differential "
            "privacy.",
            "https://arxiv.org/abs/2110.03620",
        ),
    ),
    "steps": (
        (
            "Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang (2016). Deep "
            "learning with differential privacy.",
            "https://arxiv.org/abs/1607.00133",
        ),
        (
            "Zhu, Dong, Wang (2022). Optimal accounting of differential privacy via "
            "characteristic function.",
            "https://arxiv.org/abs/2106.08567",
        ),
    ),
    "objective": (
        (
            "Chaudhuri, Monteleoni, Sarwate (2011). Differentially private empirical "
            "risk minimization.",
            "https://arxiv.org/abs/0912.0071",
        ),
        (
            "Redberg, Koskela, Wang (2023). Improving the privacy and practicality of "
            "objective perturbation for differentially private linear learners.",
            "https://arxiv.org/abs/2401.00583",
        ),
    ),
}


def sources_of(facts: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """List references and their addresses for the mechanism of a fit."""
    kind = facts["kind"]
    if kind == "learner":
        codes = {one["code"] for one in facts["assumptions"]}
        kind = "steps" if ROW_BY_ROW.code in codes else "objective"
    return (*_PROFILE, *_RENYI, *_OF_KIND[kind])
