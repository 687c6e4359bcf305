"""What to ask before somebody signs an assumption."""

__all__ = ["QUALITY_ROWS_PUBLIC", "QUESTIONS"]

QUALITY_ROWS_PUBLIC = "the rows behind the figures of quality are public"

#: One for each assumption of a private fit, by the words that statements and the cards
#: of published models hold.
QUESTIONS = {
    # Labels and columns.
    "the label set is public": "Would a stranger know every label that may occur?",
    "the label set (read from y) is public": (
        "That a rare label occurs, such as a diagnosis, tells that somebody has it. "
        "Were all labels known beforehand?"
    ),
    "the columns of X, their types and their categories are public": (
        "Would a stranger know which columns there are, and what they may hold?"
    ),
    # Rows.
    "X_public is public": (
        "X_public are the rows without labels. Nobody in them is protected. May "
        "everybody see them, and were they chosen without a look at the private rows?"
    ),
    "the rows held out by public_size are public": (
        "These are rows of the private table, drawn at random and used without their "
        "labels. Nobody in them is protected, and the model may give away what they "
        "hold. May everybody see them?"
    ),
    QUALITY_ROWS_PUBLIC: "May everybody see them, labels included?",
    "the number of rows is public, as public_size holds out a share of them (a row "
    "that is removed leaves its place empty)": (
        "May everybody know exactly how many rows the table has?"
    ),
    "the number of rows, which makes the sampling rate, is public": (
        "May everybody know exactly how many rows the model was trained on?"
    ),
    "the number of rows that were fitted on, which the price depends on, is public": (
        "May everybody know exactly how many rows the model was trained on?"
    ),
    # Parties.
    "what each party says was made from its own data alone": (
        "Did every party label the public rows by itself, with a model that has seen "
        "nobody else's private rows?"
    ),
    "nobody's data is with more than one party": (
        "Can a person be known to two parties, such as a patient of two hospitals? "
        "Then what is promised to this person is weaker: see the table."
    ),
    # Choices.
    "all parameters were chosen without a look at private data": (
        "Were models, thresholds, numbers of teachers and questions settled before any "
        "look at these data, on public ones, or on others?"
    ),
    "rows that were prepared in another way were fitted with another random_state": (
        "For the engineer: were these data also fitted after another preparation, such "
        "as clipping or cleaning? If so, did each preparation have a random_state of "
        "its own? Otherwise, two equal models tell that it changed nothing."
    ),
    "the representation was fitted on public rows alone": (
        "For the engineer: did the representation, and whatever it was started from "
        "(pretrained weights, a FrozenEstimator), see public rows alone, and may "
        "everybody see these?"
    ),
    "the representation makes each row's features from that row alone, the same each "
    "time": (
        "For the engineer: every private row is transformed alone. If a row is added "
        "or removed, do the features of all others stay as they are, bit by bit? They "
        "would not if the representation kept something from one call to the next."
    ),
    "what is in a FrozenEstimator was fitted on public rows": (
        "For the engineer: what is frozen here, on which rows was it fitted, and may "
        "everybody see these?"
    ),
    # Bounds and arithmetic.
    "the bounds of the features and of the rows' norm are public": (
        "For the engineer: the smallest and largest values that count were set by "
        "hand. Do they come from general knowledge, such as an age between 0 and 120, "
        "and not from a look at the rows?"
    ),
    "the network and its loss treat each row of a batch on its own, and nobody knows "
    "what they draw at random, as for dropout": (
        "For the engineer: is the network free of layers that mix the rows of a batch, "
        "such as batch normalisation, and are its seeds secret?"
    ),
    "floating-point arithmetic is near enough to that of real numbers: nobody reads "
    "the last bits of the noise": (
        "For the engineer: computers round, and the last digits of published weights "
        "may tell more than the proof allows. Is this gap acceptable for these data?"
    ),
    # Searches.
    "nobody else learns how many fits there were, their scores, or how long the search "
    "took": ("Do logs, timings and results of the search stay with the data holder?"),
    "each fit fails, if it does, as privately as it succeeds, and predicts each row by "
    "itself": (
        "For the engineer: does no fit stop because of what one row holds, and does a "
        "prediction depend on no other row that is predicted along with it?"
    ),
}
