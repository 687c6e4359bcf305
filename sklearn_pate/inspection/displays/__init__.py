"""Plots of privacy costs, scores and vote margins."""

from sklearn_pate.inspection.displays._answer_cost import AnswerCostDisplay
from sklearn_pate.inspection.displays._epsilon_delta import EpsilonDeltaDisplay
from sklearn_pate.inspection.displays._privacy_utility import PrivacyUtilityDisplay
from sklearn_pate.inspection.displays._vote_margins import VoteMarginsDisplay

__all__ = [
    "AnswerCostDisplay",
    "EpsilonDeltaDisplay",
    "PrivacyUtilityDisplay",
    "VoteMarginsDisplay",
]
