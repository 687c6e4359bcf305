"""Tables from files, with the domain that their descriptions declare.

stroke            5,110 patients, 4.9 % with a stroke
credit_default    30,000 clients, 22 % in default (UCI, CC BY 4.0)
obesity           2,111 people, seven classes; most rows are made by SMOTE (UCI,
                  CC BY 4.0)

The files are in the folder ``tables`` of ``SKLEARN_PATE_DATA``, and are not downloaded.
Of the rows, 6 of 10 are private, 1 is public and 3 are evaluated.
"""

import io

import numpy as np
import pandas as pd
from sklearn.preprocessing import normalize

from benchmarks.learners.data import SPLIT_SEED, LearnerData, _one_hot
from sklearn_pate.datasets._fetch import DataFile, read_data_file

FILES = {
    "stroke": (
        "9e3270085bca6df99c5a74df50214156f19cfe1ff93bcf8f4213068dc0b12581",
        "https://www.kaggle.com/datasets/fedesoriano/stroke-prediction-dataset",
    ),
    "credit_default": (
        "556af04643f02572cfed6a8e1e43019cb3143e63453bb469e8e3471131de7bf1",
        "https://archive.ics.uci.edu/dataset/350",
    ),
    "obesity": (
        "eadeab5a73622784723cf4d406f094504bcbd5aa1376a29391e07184bd34b6f3",
        "https://archive.ics.uci.edu/dataset/544",
    ),
}
LABELS = {
    "stroke": "stroke",
    "credit_default": "default.payment.next.month",
    "obesity": "NObeyesdad",
}
YES, HOW_OFTEN = ["no", "yes"], ["no", "Sometimes", "Frequently", "Always"]
MONTHS = range(1, 7)
PAID = (0, 1, 10, 100, 1000, 2500, 5000, 10_000, 20_000, 50_000, 100_000, 1_000_000)
OWED = (-100_000, 0, 1, 1000, 5000, 20_000, 100_000, 200_000, 500_000, 1_000_000)
DOMAINS = {
    "stroke": {
        "gender": ["Male", "Female", "Other"],
        "age": (0, 100),
        "hypertension": [0, 1],
        "heart_disease": [0, 1],
        "ever_married": ["No", "Yes"],
        "work_type": [
            "children",
            "Govt_job",
            "Never_worked",
            "Private",
            "Self-employed",
        ],
        "Residence_type": ["Rural", "Urban"],
        "avg_glucose_level": (40, 300),
        "bmi": {"range": (10, 70), "missing": True},
        "smoking_status": ["formerly smoked", "never smoked", "smokes", "Unknown"],
    },
    "credit_default": {
        "LIMIT_BAL": (0, 1_000_000),
        "SEX": [1, 2],
        "EDUCATION": list(range(7)),
        "MARRIAGE": list(range(4)),
        "AGE": (18, 90),
        **{f"PAY_{month}": list(range(-2, 10)) for month in MONTHS},
        **{f"BILL_AMT{month}": OWED for month in MONTHS},
        **{f"PAY_AMT{month}": PAID for month in MONTHS},
    },
    "obesity": {
        "Age": (10, 70),
        "Gender": ["Female", "Male"],
        "Height": (1.3, 2.1),
        "Weight": (30, 180),
        "family_history_with_overweight": YES,
        "FAVC": YES,
        "FCVC": (1, 3),
        "NCP": (1, 4),
        "CAEC": HOW_OFTEN,
        "SMOKE": YES,
        "CH2O": (1, 3),
        "SCC": YES,
        "FAF": (0, 3),
        "TUE": (0, 2),
        "CALC": HOW_OFTEN,
        "MTRANS": [
            "Automobile",
            "Motorbike",
            "Bike",
            "Public_Transportation",
            "Walking",
        ],
    },
}


def load_file(name, seed=SPLIT_SEED, sizes=None):
    """Load a table and its domain; `sizes` are those of public and evaluated rows."""
    sha256, page = FILES[name]
    content = read_data_file(DataFile("tables", f"{name}.csv.gz", sha256, (page,)))
    rows = pd.read_csv(io.BytesIO(content), compression="gzip", encoding="utf-8-sig")
    y = pd.factorize(rows[LABELS[name]], sort=True)[0]
    frame, domain = rows[list(DOMAINS[name])], DOMAINS[name]
    order = np.random.RandomState(seed).permutation(len(y))
    ends = 6 * len(y) // 10, 7 * len(y) // 10
    if sizes is not None:
        ends = len(y) - sum(sizes), len(y) - sizes[1]
    train, public, test = np.split(order, ends)
    X = encode(frame, domain)
    return LearnerData(
        name=name,
        X_train=X[train],
        y_train=y[train],
        X_public=X[public],
        X_test=X[test],
        y_test=y[test],
        frame_train=frame.iloc[train],
        frame_public=frame.iloc[public],
        frame_test=frame.iloc[test],
        groups_train=None,
        groups_test=None,
        metric="auc",
    ), domain


def encode(frame, domain):
    """Encode rows by their domain only: categories one by one, numbers from 0 to 1."""
    blocks = []
    for name, declared in domain.items():
        if isinstance(declared, list):
            blocks.append(_one_hot(frame[name], declared))
            continue
        edges = declared["range"] if isinstance(declared, dict) else declared
        column = np.interp(frame[name], edges, np.linspace(0, 1, len(edges)))
        blocks += [np.nan_to_num(column), np.isnan(column)]
    return normalize(np.column_stack(blocks), copy=False)
