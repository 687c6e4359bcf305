"""References of a privacy report."""

from typing import Any

from sklearn_pate.accounting._assumptions import ROW_BY_ROW

__all__ = ["sources_of"]

_TRADE_OFF = (
    (
        "Wasserman, Zhou (2010). A statistical framework for differential privacy.",
        "https://doi.org/10.1198/jasa.2009.tm08651",
    ),
    (
        "Kairouz, Oh, Viswanath (2015). The composition theorem for differential "
        "privacy. (Guesses, false alarms and detections.)",
        "https://arxiv.org/abs/1311.0776",
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
    "sums": (
        (
            "Balle, Wang (2018). Improving the Gaussian mechanism for differential "
            "privacy.",
            "https://arxiv.org/abs/1805.06530",
        ),
    ),
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
    return (*_TRADE_OFF, *_RENYI, *_OF_KIND[kind])
