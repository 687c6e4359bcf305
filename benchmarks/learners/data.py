"""Data of the comparisons, encoded for linear learners and for teachers.

Linear learners with a privacy guarantee use dense rows of L2 norm at most 1, as in
Chaudhuri, Monteleoni and Sarwate (2011). The encoding is public: categories
and bounds are those of the documentation, or round numbers, and nothing is fitted on
rows. A number beyond its bounds is clipped; a category without a column, such as a
drug that was not prescribed, adds nothing to a row's norm.

Teachers use the original columns, and encode inside their shards.
"""

import io
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler, normalize

from benchmarks.tables.tabular import N_EVALUATED
from sklearn_pate.datasets import fetch_adult, fetch_diabetes130, fetch_mnist
from sklearn_pate.datasets._fetch import DataFile, read_data_file

SPLIT_SEED = 0  # one split for all; the seeds of a benchmark are those of its learners

ADULT_RANGES = {"age": (17, 90), "education-num": (1, 16), "hours-per-week": (1, 99)}
ADULT_CAPS = {"capital-gain": 100_000, "capital-loss": 10_000}

KDD_FILE = DataFile(
    "kddcup99",
    "kddcup.data_10_percent.gz",
    "8045aca0d84e70e622d1148d7df782496f6333bf6eb979a1b0837c42a9fd9561",
    ("https://ndownloader.figshare.com/files/5976042",),
)
KDD_COLUMNS = """
duration protocol_type service flag src_bytes dst_bytes land wrong_fragment urgent hot
num_failed_logins logged_in num_compromised root_shell su_attempted num_root
num_file_creations num_shells num_access_files num_outbound_cmds is_host_login
is_guest_login count srv_count serror_rate srv_serror_rate rerror_rate srv_rerror_rate
same_srv_rate diff_srv_rate srv_diff_host_rate dst_host_count dst_host_srv_count
dst_host_same_srv_rate dst_host_diff_srv_rate dst_host_same_src_port_rate
dst_host_srv_diff_host_rate dst_host_serror_rate dst_host_srv_serror_rate
dst_host_rerror_rate dst_host_srv_rerror_rate
"""
# The values that the header of NSL-KDD declares (Tavallaee et al. 2009).
KDD_SERVICES = """
IRC X11 Z39_50 aol auth bgp courier csnet_ns ctf daytime discard domain domain_u echo
eco_i ecr_i efs exec finger ftp ftp_data gopher harvest hostnames http http_2784
http_443 http_8001 imap4 iso_tsap klogin kshell ldap link login mtp name netbios_dgm
netbios_ns netbios_ssn netstat nnsp nntp ntp_u other pm_dump pop_2 pop_3 printer private
red_i remote_job rje shell smtp sql_net ssh sunrpc supdup systat telnet tftp_u tim_i
time urh_i urp_i uucp uucp_path vmnet whois
"""
KDD_CATEGORIES = {
    "protocol_type": ("icmp", "tcp", "udp"),
    "service": KDD_SERVICES.split(),
    "flag": (
        "OTH",
        "REJ",
        "RSTO",
        "RSTOS0",
        "RSTR",
        "S0",
        "S1",
        "S2",
        "S3",
        "SF",
        "SH",
    ),
}
KDD_EVENTS = """
wrong_fragment urgent hot num_failed_logins num_compromised num_root num_file_creations
num_shells num_access_files num_outbound_cmds
"""
# A day, a gigabyte, a hundred events, and the limits of the counters of connections.
KDD_CAPS = {
    "duration": 86_400,
    **dict.fromkeys(("src_bytes", "dst_bytes"), 10**9),
    **dict.fromkeys(KDD_EVENTS.split(), 100),
    **dict.fromkeys(("count", "srv_count"), 512),
    **dict.fromkeys(("dst_host_count", "dst_host_srv_count"), 256),
}
# The other columns are rates and flags.
KDD_RANGES = {
    name: (0, 1)
    for name in KDD_COLUMNS.split()
    if name not in KDD_CATEGORIES and name not in KDD_CAPS
}

# First three digits of ICD-9 codes: table 2 of Strack et al. (2014).
DIAGNOSES = {
    "circulatory": (*range(390, 460), 785),
    "respiratory": (*range(460, 520), 786),
    "digestive": (*range(520, 580), 787),
    "diabetes": (250,),
    "injury": range(800, 1000),
    "musculoskeletal": range(710, 740),
    "genitourinary": (*range(580, 630), 788),
    "neoplasms": range(140, 240),
}
DIAGNOSIS_OF = {str(code): name for name, codes in DIAGNOSES.items() for code in codes}
# That paper also groups specialties, and omits weight and payer_code (mostly missing).
SPECIALTIES = {
    "?": "missing",
    "InternalMedicine": "internal medicine",
    "Cardiology": "cardiology",
    "Family/GeneralPractice": "family practice",
}
DRUGS = """
metformin repaglinide nateglinide chlorpropamide glimepiride acetohexamide glipizide
glyburide tolbutamide pioglitazone rosiglitazone acarbose miglitol troglitazone
tolazamide examide citoglipton insulin glyburide-metformin glipizide-metformin
glimepiride-pioglitazone metformin-rosiglitazone metformin-pioglitazone
"""
DIABETES_CATEGORIES = {
    "race": ("Caucasian", "AfricanAmerican", "Hispanic", "Asian", "Other"),
    "gender": ("Female", "Male"),
    "age": [f"[{low}-{low + 10})" for low in range(0, 100, 10)],
    "admission_type_id": [str(i) for i in range(1, 9)],
    "discharge_disposition_id": [str(i) for i in range(1, 31)],
    "admission_source_id": [str(i) for i in range(1, 27)],
    "medical_specialty": (*SPECIALTIES.values(), "surgery", "other"),
    **dict.fromkeys(("diag_1", "diag_2", "diag_3"), (*DIAGNOSES, "other")),
    "max_glu_serum": ("Norm", ">200", ">300"),
    "A1Cresult": ("Norm", ">7", ">8"),
    "change": ("Ch",),
    "diabetesMed": ("Yes",),
    **dict.fromkeys(DRUGS.split(), ("Steady", "Up", "Down")),
}
DIABETES_RANGES = {
    "time_in_hospital": (1, 14),
    "num_lab_procedures": (0, 100),
    "num_procedures": (0, 10),
    "num_medications": (0, 50),
    "number_diagnoses": (0, 10),
}
DIABETES_CAPS = dict.fromkeys(
    ("number_outpatient", "number_emergency", "number_inpatient"), 20
)


@dataclass(frozen=True)
class LearnerData:
    """Private rows, public rows without labels, and evaluated rows.

    `X_*` are encoded rows of norm at most 1, `frame_*` the original columns.
    """

    name: str
    X_train: np.ndarray
    y_train: np.ndarray
    X_public: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    frame_train: pd.DataFrame | np.ndarray
    frame_public: pd.DataFrame | np.ndarray
    frame_test: pd.DataFrame | np.ndarray
    groups_train: np.ndarray | None
    groups_test: np.ndarray | None
    metric: str


@cache
def load(name):
    """Load a data set."""
    return DATA[name]()


def encode(frame, categories, ranges, caps):
    """Encode rows by public knowledge only.

    `categories` are one-hot encoded, `ranges` scaled linearly, `caps` logarithmically.
    """
    blocks = [_one_hot(frame[name], values) for name, values in categories.items()]
    blocks += _scaled(frame, ranges, caps)
    return normalize(np.column_stack(blocks), copy=False)


def adult_columns():
    """Return Adult with a number for each column, for learners with an encoder.

    Categories are numbered, with one number more for a missing value; other columns are
    scaled to [0, 1] as in `encode`. The sizes are numbers of categories, 0 for a scale.
    """
    data = load("adult")
    parts = [_numbered(frame) for frame in (data.frame_train, data.frame_test)]
    (X_train, sizes), (X_test, _) = parts
    return {
        "X_train": X_train,
        "y_train": data.y_train,
        "X_test": X_test,
        "y_test": data.y_test,
        "sizes": sizes,
    }


def _numbered(frame):
    columns, sizes = [], []
    for _, column in frame.select_dtypes("category").items():
        codes, n_categories = column.cat.codes, len(column.cat.categories)
        columns.append(codes.where(codes >= 0, n_categories))
        sizes.append(n_categories + 1)
    scaled = list(_scaled(frame, ADULT_RANGES, ADULT_CAPS))
    return np.column_stack([*columns, *scaled]), np.array(sizes + [0] * len(scaled))


def _scaled(frame, ranges, caps):
    for name, (low, high) in ranges.items():
        yield (np.clip(frame[name], low, high) - low) / (high - low)
    for name, cap in caps.items():
        yield np.log1p(np.clip(frame[name], 0, cap)) / np.log1p(cap)


def _one_hot(values, categories):
    position = pd.Index(categories).get_indexer(values.astype(object))
    return position[:, np.newaxis] == np.arange(len(categories))


def _cut(name, X, y, frame, n_train, n_test, *, groups=None, metric):
    """Cut ordered rows into private, public and evaluated ones."""
    train = slice(n_train)
    public, test = slice(n_train, len(y) - n_test), slice(len(y) - n_test, None)
    return LearnerData(
        name=name,
        X_train=X[train],
        y_train=y[train],
        X_public=X[public],
        X_test=X[test],
        y_test=y[test],
        frame_train=frame[train],
        frame_public=frame[public],
        frame_test=frame[test],
        groups_train=None if groups is None else groups[train],
        groups_test=None if groups is None else groups[test],
        metric=metric,
    )


def _adult():
    data = fetch_adult(as_frame=True)
    # The categories are those listed in adult.names, in another order.
    categories = {
        name: sorted(column.cat.categories)
        for name, column in data.data.select_dtypes("category").items()
    }
    return _cut(
        "Adult",
        # Without fnlwgt, the survey's weight.
        encode(data.data, categories, ADULT_RANGES, ADULT_CAPS),
        (data.target == ">50K").to_numpy().astype(int),
        data.data,
        n_train=32561,
        n_test=N_EVALUATED,
        metric="accuracy",
    )


def _kddcup99(n_private=60_000):
    content = read_data_file(KDD_FILE)
    rows = pd.read_csv(
        io.BytesIO(content), compression="gzip", names=[*KDD_COLUMNS.split(), "label"]
    )
    order = np.random.RandomState(SPLIT_SEED).permutation(len(rows))
    # Public and evaluated rows do not depend on the number of private ones.
    more = order[110_000 : 50_000 + n_private]
    order = np.concatenate([order[:60_000], more, order[60_000:110_000]])
    rows = rows.iloc[order].reset_index(drop=True)
    y = (rows.pop("label") != "normal.").to_numpy().astype(int)
    for name, values in KDD_CATEGORIES.items():
        rows[name] = pd.Categorical(rows[name], categories=values)
    return _cut(
        "KDDCup99",
        encode(rows, KDD_CATEGORIES, KDD_RANGES, KDD_CAPS),
        y,
        rows,
        n_train=n_private,
        n_test=40_000,
        metric="accuracy",
    )


def _diabetes():
    data = fetch_diabetes130(as_frame=True)
    patients, patient = np.unique(data.groups, return_inverse=True)
    rank = np.random.RandomState(SPLIT_SEED).permutation(len(patients))[patient]
    # Shares of patients as in tabular.py; the parts have no common patient.
    side = np.searchsorted([0.65, 0.8], rank / len(patients), side="right")
    order = np.argsort(side, kind="stable")
    frame = data.data.iloc[order].reset_index(drop=True)
    grouped = frame.assign(
        medical_specialty=frame["medical_specialty"].astype(str).map(_specialty),
        **{
            name: frame[name].astype(str).map(_diagnosis)
            for name in ("diag_1", "diag_2", "diag_3")
        },
    )
    return _cut(
        "Diabetes",
        encode(grouped, DIABETES_CATEGORIES, DIABETES_RANGES, DIABETES_CAPS),
        (data.target == "<30").to_numpy().astype(int)[order],
        frame,
        n_train=int(np.sum(side == 0)),
        n_test=int(np.sum(side == 2)),
        groups=data.groups[order],
        metric="roc_auc",
    )


def _specialty(name):
    if name.startswith("Surg"):
        return "surgery"
    return SPECIALTIES.get(name, "other")


def _diagnosis(code):
    if code == "?":
        return "missing"
    return DIAGNOSIS_OF.get(code.split(".")[0], "other")


def _nonlinear():
    X, y = make_classification(
        515_000,
        20,
        n_informative=10,
        n_redundant=4,
        n_clusters_per_class=4,
        flip_y=0.05,
        random_state=7,
    )
    order = np.random.RandomState(SPLIT_SEED).permutation(len(X))
    X, y = X[order], y[order]
    # No learner that needs rows of norm 1 is measured on these.
    return _cut(
        "500,000 nonlinear rows",
        X,
        y,
        X,
        n_train=500_000,
        n_test=10_000,
        metric="accuracy",
    )


def component(place, *, n_private=5000, n_public=1000, n_columns=21):
    """Make rows whose class depends on one principal component of their columns.

    The k-th component has a variance of about 0.81^k. The second class has a third of
    the rows.
    """
    rng, n_rows = np.random.RandomState(place), n_private + n_public + N_EVALUATED
    turned = np.linalg.qr(rng.standard_normal((n_columns, n_columns)))[0]
    latent = rng.standard_normal((n_rows, n_columns)) * 0.9 ** np.arange(n_columns)
    X = StandardScaler().fit_transform(latent @ turned.T)
    score = 2 * PCA(n_columns, whiten=True).fit_transform(X)[:, place - 1]
    chance = rng.logistic(size=n_rows)
    y = (score + chance > np.quantile(score + chance, 2 / 3)).astype(int)
    name = f"component {place}"
    return _cut(name, X, y, X, n_train=n_private, n_test=N_EVALUATED, metric="accuracy")


def _mnist():
    data = fetch_mnist()
    X = normalize(data.data.astype(np.float64), copy=False)
    return _cut(
        "MNIST",
        X,
        data.target,
        X,
        n_train=60_000,
        n_test=1000,
        metric="accuracy",
    )


DATA = {
    "adult": _adult,
    "kddcup99": _kddcup99,
    "kddcup99, all rows": partial(_kddcup99, n_private=444_021),
    "diabetes": _diabetes,
    "nonlinear": _nonlinear,
    "mnist": _mnist,
}
