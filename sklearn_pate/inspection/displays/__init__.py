"""Pictures of privacy: what it costs, and what it buys."""

from sklearn_pate.inspection.displays.answer_cost import AnswerCostDisplay
from sklearn_pate.inspection.displays.epsilon_delta import EpsilonDeltaDisplay
from sklearn_pate.inspection.displays.privacy_utility import PrivacyUtilityDisplay
from sklearn_pate.inspection.displays.vote_margins import VoteMarginsDisplay

__all__ = [
    "AnswerCostDisplay",
    "EpsilonDeltaDisplay",
    "PrivacyUtilityDisplay",
    "VoteMarginsDisplay",
]
