"""Adult and Diabetes: accuracy against privacy. Writes results/tabular.json.

adult_2017         settings of the 2017 PATE paper, with its bound and a publishable one
adult_2017_noise   published votes, by the scale of the noise and the number of queries
adult              accuracy against the number of queries, at publishable epsilon
adult_methods      parties of one learning method, and of five methods
diabetes           patients as the unit, at publishable epsilon 2
diabetes_balanced  settings of the 2017 PATE paper, with several ways of balancing

`adult_2017_noise` reads the folder ``pate2018_votes`` of SKLEARN_PATE_DATA. A teacher
votes for its most probable class, as in the papers. The partition, teachers
and students are seeded; the noise is not, and always differs.
"""

import warnings
from collections import defaultdict
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import GroupShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from benchmarks.accounting.accounting import published
from benchmarks.record import command, save, summary
from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.accounting.bounds import (
    laplace_2017,
    laplace_2017_strong_composition,
)
from sklearn_pate.datasets import fetch_adult, fetch_diabetes130
from sklearn_pate.mechanisms import LNMax

SEEDS = range(5)
DELTA = 1e-5
N_EVALUATED = 11282  # the last test rows, as in the 2017 paper
GAMMA_2017 = 0.05  # Laplace noise of scale 20, in the same paper
N_QUERIES_2017 = 500
SEEDS_BALANCED = range(3)  # minutes, as each has 250 forests
N_JOBS = 2
N_PARTIES = 250
N_QUERIES_OF_PARTIES = 3000


def categories_and_numbers(min_frequency=None, skewed=()):
    """Encode categories one-hot, numbers scaled, skewed numbers on a log scale."""
    return make_column_transformer(
        (
            OneHotEncoder(handle_unknown="ignore", min_frequency=min_frequency),
            make_column_selector(dtype_include="category"),
        ),
        (make_pipeline(FunctionTransformer(np.log1p), StandardScaler()), list(skewed)),
        remainder=StandardScaler(),
    )


def adult_2017():
    """Repeat the experiment of the 2017 paper."""
    train = fetch_adult(subset="train")
    test = fetch_adult(subset="test")
    # The paper has 13 features, without a list. The survey's weight is omitted here.
    features = [i for i, name in enumerate(train.feature_names) if name != "fnlwgt"]
    X_train, X_test = train.data[:, features], test.data[:, features]
    X_eval, y_eval = X_test[-N_EVALUATED:], test.target[-N_EVALUATED:]
    X_public, y_public = X_test[:500], test.target[:500]
    gamma = 0.05
    measured = defaultdict(list)
    for seed in SEEDS:
        forest = RandomForestClassifier(100, random_state=seed, n_jobs=N_JOBS)
        measured["not_private"].append(
            forest.fit(X_train, train.target).score(X_eval, y_eval)
        )
        pate = PATEClassifier(
            RandomForestClassifier(100),
            RandomForestClassifier(100),
            n_teachers=250,
            mechanism=LNMax(gamma=gamma),
            vote="plain",
            representation=None,
            epsilon=None,
            delta=DELTA,
            n_queries=500,
            n_jobs=N_JOBS,
            random_state=seed,
        ).fit(X_train, train.target, X_public=PublicData(X_public))
        analysis = pate.privacy_analysis_
        truth = y_public[pate.queried_indices_]
        measured["accuracy"].append(pate.score(X_eval, y_eval))
        measured["plurality"].append(
            np.mean(pate.classes_[analysis.plurality] == truth)
        )
        measured["answers"].append(np.mean(pate.classes_[pate.answers_] == truth))
        measured["epsilon_2017"].append(analysis.paper_epsilon)
        measured["exact_epsilon"].append(analysis.epsilon)
    print("adult_2017", {name: np.mean(values) for name, values in measured.items()})
    return [
        {
            "gamma": gamma,
            "n_teachers": 250,
            "n_queries": 500,
            "delta": DELTA,
            "publishable_epsilon": pate.privacy_spent_.epsilon,
            "strong_composition_2017": laplace_2017_strong_composition(
                500, gamma, DELTA
            ),
            **{name: summary(values) for name, values in measured.items()},
        }
    ]


def adult():
    """Measure accuracy by epsilon, number of queries and student."""
    # One poll serves all fits with equal teachers, seed and public rows.
    with TemporaryDirectory() as votes:
        return _adult(votes)


def _adult(votes):
    train = fetch_adult(subset="train", as_frame=True)
    test = fetch_adult(subset="test", as_frame=True)
    X_public = test.data[:-N_EVALUATED]
    X_eval, y_eval = test.data[-N_EVALUATED:], test.target[-N_EVALUATED:]
    skewed = ["capital-gain", "capital-loss"]
    teacher = make_pipeline(
        categories_and_numbers(skewed=skewed), LogisticRegression(max_iter=300)
    )
    students = {
        "boosting": HistGradientBoostingClassifier(
            max_iter=60, learning_rate=0.07, max_leaf_nodes=4, min_samples_leaf=50
        ),
        "logistic": make_pipeline(
            categories_and_numbers(skewed=skewed),
            LogisticRegression(C=0.1, max_iter=300),
        ),
    }
    not_private = {
        "boosting": HistGradientBoostingClassifier(random_state=0),
        "logistic": teacher,
    }
    rows = [
        {
            "student": f"not private, {name}",
            "accuracy": summary(
                [clone(model).fit(train.data, train.target).score(X_eval, y_eval)]
            ),
        }
        for name, model in not_private.items()
    ]
    # More teachers with fewer rows at larger noise.
    for epsilon, n_teachers in ((0.5, 500), (1.0, 250), (2.0, 250)):
        for n_queries in (250, 500, 1000, 1500, 2000, 3000, len(X_public)):
            for name, student in students.items():
                pates = [
                    PATEClassifier(
                        teacher,
                        student,
                        n_teachers=n_teachers,
                        mechanism="gnmax",
                        vote="plain",
                        representation=None,
                        epsilon=epsilon,
                        delta=DELTA,
                        n_queries=n_queries,
                        query_strategy="random",
                        memory=votes,
                        n_jobs=N_JOBS,
                        random_state=seed,
                    ).fit(train.data, train.target, X_public=PublicData(X_public))
                    for seed in SEEDS
                ]
                rows.append(
                    {
                        "student": name,
                        "n_teachers": n_teachers,
                        "n_queries": n_queries,
                        "sigma": pates[0].mechanism_.sigma,
                        "target_epsilon": epsilon,
                        "publishable_epsilon": pates[0].privacy_spent_.epsilon,
                        "delta": DELTA,
                        "exact_epsilon": summary(
                            [pate.privacy_analysis_.epsilon for pate in pates]
                        ),
                        "epsilon_2018": summary(
                            [pate.privacy_analysis_.paper_epsilon for pate in pates]
                        ),
                        "accuracy": summary(
                            [pate.score(X_eval, y_eval) for pate in pates]
                        ),
                    }
                )
                print("adult", epsilon, n_queries, name, rows[-1]["accuracy"])
    return rows


def adult_methods():
    """Compare parties that all use one method with parties that use five."""
    train = fetch_adult(subset="train", as_frame=True)
    test = fetch_adult(subset="test", as_frame=True)
    X_public, y_public = test.data[:-N_EVALUATED], test.target[:-N_EVALUATED]
    X_eval, y_eval = test.data[-N_EVALUATED:], test.target[-N_EVALUATED:]
    skewed = ["capital-gain", "capital-loss"]
    methods = {
        "logistic regression": LogisticRegression(max_iter=300),
        "random forest": RandomForestClassifier(20),
        "gradient boosting": GradientBoostingClassifier(n_estimators=20),
        "nearest neighbours": KNeighborsClassifier(),
        "naive Bayes": GaussianNB(),
    }
    student = make_pipeline(
        categories_and_numbers(skewed=skewed), LogisticRegression(C=0.1, max_iter=300)
    )
    # The methods of the parties, in turn.
    ensembles = {
        **{name: [name] for name in methods},
        "all but naive Bayes, in turn": [*methods][:-1],
        "all five, in turn": [*methods],
    }
    measured = {name: defaultdict(list) for name in ensembles}
    for seed in SEEDS:
        shards = np.array_split(
            np.random.default_rng(seed).permutation(len(train.data)), N_PARTIES
        )
        labels = {name: [] for name in methods}
        for rows in shards:  # an encoder of each party, on its own rows
            encoder = categories_and_numbers(skewed=skewed).set_params(
                onehotencoder__sparse_output=False
            )
            X = encoder.fit_transform(train.data.iloc[rows])
            X_labelled = encoder.transform(X_public)
            for name, method in methods.items():
                model = clone(method)
                if "random_state" in model.get_params():
                    model.set_params(random_state=seed)
                model.fit(X, train.target.iloc[rows])
                labels[name].append(model.predict(X_labelled))
        for name, in_turn in ensembles.items():
            of_parties = [
                labels[in_turn[party % len(in_turn)]][party]
                for party in range(N_PARTIES)
            ]
            right = np.asarray(of_parties) == y_public.to_numpy()
            pate = PATEClassifier(
                student=student,
                mechanism="gnmax",
                epsilon=1.0,
                delta=DELTA,
                n_queries=N_QUERIES_OF_PARTIES,
                classes=np.unique(y_public),
                random_state=seed,
            ).fit_from_votes(PublicData(X_public), of_parties)
            of_name = measured[name]
            of_name["party"].append(right.mean())
            of_name["plurality"].append(np.mean(2 * right.sum(axis=0) > N_PARTIES))
            of_name["student"].append(pate.score(X_eval, y_eval))
        print("adult_methods", seed, {k: dict(v) for k, v in measured.items()})
    return [
        {
            "methods": name,
            "n_parties": N_PARTIES,
            "n_queries": N_QUERIES_OF_PARTIES,
            "publishable_epsilon": pate.privacy_spent_.epsilon,
            "delta": DELTA,
            **{key: summary(values) for key, values in of_name.items()},
        }
        for name, of_name in measured.items()
    ]


def diabetes():
    """Compare the private student with models without privacy."""
    data = fetch_diabetes130(as_frame=True)
    X, patient = data.data, data.groups
    y = np.where(data.target == "<30", "readmitted", "not readmitted")
    encoder = categories_and_numbers(
        min_frequency=0.2,
        skewed=["number_outpatient", "number_emergency", "number_inpatient"],
    )
    teacher = make_pipeline(
        encoder, LogisticRegression(C=0.01, class_weight="balanced", max_iter=300)
    )
    student = make_pipeline(encoder, LogisticRegression(C=0.01, max_iter=300))
    full_encoder = categories_and_numbers(min_frequency=50)
    not_private = {
        "not private, logistic": teacher,
        "not private, logistic, all categories": make_pipeline(
            full_encoder,
            LogisticRegression(C=0.05, class_weight="balanced", max_iter=500),
        ),
        "not private, boosting": HistGradientBoostingClassifier(
            max_iter=200, learning_rate=0.05, class_weight="balanced"
        ),
    }
    measured = {name: defaultdict(list) for name in [*not_private, "private"]}
    facts = {}
    for seed in SEEDS:
        rest, test = _split_patients(patient, 0.2, seed)
        private, public = (
            rest[part] for part in _split_patients(patient[rest], 0.1875, seed)
        )
        for name, model in not_private.items():
            columns = _few(X) if "boosting" in name else X
            model = clone(model).fit(columns.iloc[private], y[private])
            _measure(measured[name], model, columns.iloc[test], y[test])
        pate = PATEClassifier(
            teacher,
            student,
            n_teachers=250,
            mechanism="gnmax",
            vote="plain",
            representation=None,
            epsilon=2.0,
            delta=DELTA,
            n_queries=len(public),
            privacy_unit="group",
            classes=["not readmitted", "readmitted"],
            n_jobs=N_JOBS,
            random_state=seed,
        ).fit(
            X.iloc[private],
            y[private],
            X_public=PublicData(X.iloc[public]),
            groups=patient[private],
        )
        _measure(measured["private"], pate, X.iloc[test], y[test])
        analysis = pate.privacy_analysis_
        measured["private"]["exact_epsilon"].append(analysis.epsilon)
        measured["private"]["epsilon_2018"].append(analysis.paper_epsilon)
        facts = {
            "n_teachers": 250,
            "n_queries": len(public),
            "sigma": pate.mechanism_.sigma,
            "publishable_epsilon": pate.privacy_spent_.epsilon,
            "delta": DELTA,
            "unit": "patient",
        }
        print("diabetes", seed, {k: dict(v) for k, v in measured.items()})
    return [
        {
            "model": name,
            **(facts if name == "private" else {}),
            **{metric: summary(values) for metric, values in metrics.items()},
        }
        for name, metrics in measured.items()
    ]


def diabetes_balanced():
    """Repeat the experiment of the 2017 paper with several ways of balancing."""
    data = fetch_diabetes130()
    X, patient = data.data, data.groups
    readmitted = (data.target == "<30").astype(int)
    rows = []
    for name, divide in BALANCING.items():
        measured = defaultdict(list)
        for seed in SEEDS_BALANCED:
            train, test = divide(readmitted, patient, np.random.default_rng(seed))
            queries, evaluated = np.split(test, [N_QUERIES_2017])
            y_eval = readmitted[evaluated]
            forest = RandomForestClassifier(100, random_state=seed)
            forest.fit(X[train], readmitted[train])
            counts = _forest_votes(X[train], readmitted[train], X[queries], seed)
            measured["not_private"].append(forest.score(X[evaluated], y_eval))
            measured["most_frequent"].append(max(y_eval.mean(), 1 - y_eval.mean()))
            _measure_2017(
                measured,
                counts,
                GAMMA_2017,
                X[queries],
                readmitted[queries],
                (X[evaluated], y_eval),
                seed,
            )
            print("diabetes_balanced", name, seed, dict(measured), flush=True)
        rows.append(
            {
                "balancing": name,
                **_facts_2017(GAMMA_2017, N_QUERIES_2017),
                **{metric: summary(values) for metric, values in measured.items()},
            }
        )
    return rows


def adult_2017_noise():
    """Vary the noise and the number of queries on the published votes of Adult."""
    counts, test = published("Adult"), fetch_adult(subset="test")
    features = [i for i, name in enumerate(test.feature_names) if name != "fnlwgt"]
    X, y = test.data[:, features], np.unique(test.target, return_inverse=True)[1]
    evaluated = X[-N_EVALUATED:], y[-N_EVALUATED:]
    rows = []
    for gamma in (0.005, 0.01, 0.02, 0.05, 0.1, 0.5):
        for n_queries in (100, 500, 1000):
            measured = defaultdict(list)
            first = slice(n_queries)
            for seed in SEEDS:
                labels = LNMax(gamma=gamma).answer(counts)
                measured["all_labels"].append(np.mean(labels == y))
                _measure_2017(
                    measured, counts[first], gamma, X[first], y[first], evaluated, seed
                )
            rows.append(
                {
                    "gamma": gamma,
                    "n_queries": n_queries,
                    **_facts_2017(gamma, n_queries),
                    **{metric: summary(values) for metric, values in measured.items()},
                }
            )
            print("adult_2017_noise", rows[-1], flush=True)
    return rows


def _forest_votes(X, y, X_public, seed):
    """Return vote counts of 250 forests, each trained on its own shard of the rows."""
    rng = np.random.default_rng(seed)
    counts = np.zeros((len(X_public), 2))
    for shard in np.array_split(rng.permutation(len(y)), 250):
        forest = RandomForestClassifier(100, random_state=seed).fit(X[shard], y[shard])
        counts[np.arange(len(counts)), forest.predict(X_public)] += 1
    return counts


def _measure_2017(into, counts, gamma, X, y, evaluated, seed):
    """Answer queries with Laplace noise, and measure labels, student and bound."""
    labels = LNMax(gamma=gamma).answer(counts)
    student = RandomForestClassifier(100, random_state=seed).fit(X, labels)
    bound = laplace_2017(counts, gamma, orders=range(2, 10))
    into["plurality"].append(np.mean(counts.argmax(axis=1) == y))
    into["answers"].append(np.mean(labels == y))
    into["accuracy"].append(student.score(*evaluated))
    into["epsilon_2017"].append(bound.to_epsilon(DELTA, conversion="classical"))


def _facts_2017(gamma, n_queries):
    """Return epsilon for all votes, and the paper's bound for unanimous votes."""
    unanimous = np.tile([250, 0], (n_queries, 1))
    bound = laplace_2017(unanimous, gamma, orders=range(2, 10))
    return {
        "publishable_epsilon": LNMax(gamma=gamma).cost(n_queries, 2).epsilon(DELTA),
        "unanimous_epsilon_2017": bound.to_epsilon(DELTA, conversion="classical"),
    }


def _as_many_others(rows, readmitted, rng):
    """Keep the readmitted, and equally many random others."""
    positive, others = rows[readmitted[rows] == 1], rows[readmitted[rows] == 0]
    kept = rng.choice(others, len(positive), replace=False)
    return rng.permutation(np.concatenate([positive, kept]))


def _copied(rows, readmitted, rng):
    """Copy the readmitted until they are about as many as the others."""
    positive, others = rows[readmitted[rows] == 1], rows[readmitted[rows] == 0]
    n_copies = round(len(others) / len(positive))
    return rng.permutation(np.concatenate([others, *n_copies * [positive]]))


def _apart(balance):
    """Return a split without a common patient, with each part balanced."""

    def divide(readmitted, patient, rng):
        parts = _split_patients(patient, 0.2, int(rng.integers(2**31)))
        return [balance(part, readmitted, rng) for part in parts]

    return divide


def _then_by_row(balance):
    """Return a split by row of the balanced rows."""

    def divide(readmitted, patient, rng):
        rows = balance(np.arange(len(readmitted)), readmitted, rng)
        test, train = np.split(rows, [len(rows) // 5])
        return train, test

    return divide


#: Functions of labels, patients and a generator, which return rows of two parts.
BALANCING = {
    "drop others, split by patient": _apart(_as_many_others),
    "drop others, then split by row": _then_by_row(_as_many_others),
    "split by patient, repeat the readmitted": _apart(_copied),
    "repeat the readmitted, then split by row": _then_by_row(_copied),
    "not balanced, split by patient": _apart(
        lambda rows, readmitted, rng: rng.permutation(rows)
    ),
}


def _few(X):
    """Merge rare categories, as histogram boosting supports at most 255."""
    X = X.copy()
    for name in X.select_dtypes("category"):
        common = X[name].value_counts().index[:250].tolist()
        X[name] = X[name].cat.set_categories(common)
    return X


def _split_patients(patient, test_size, seed):
    """Split rows in two parts without a common patient."""
    splitter = GroupShuffleSplit(1, test_size=test_size, random_state=seed)
    return next(splitter.split(patient, groups=patient))


def _measure(into, model, X, y):
    predicted = model.predict(X)
    positive = list(model.classes_).index("readmitted")
    into["accuracy"].append(accuracy_score(y, predicted))
    into["balanced_accuracy"].append(balanced_accuracy_score(y, predicted))
    into["auc"].append(
        roc_auc_score(y == "readmitted", model.predict_proba(X)[:, positive])
    )


TABLES = {
    "adult_2017": adult_2017,
    "adult_2017_noise": adult_2017_noise,
    "adult": adult,
    "adult_methods": adult_methods,
    "diabetes": diabetes,
    "diabetes_balanced": diabetes_balanced,
}


def main():
    """Measure the named tables, or all."""
    warnings.filterwarnings("ignore", category=FutureWarning)
    # The moments of the 2017 paper are few.
    warnings.filterwarnings("ignore", message="The best order")
    for table in command(__doc__, TABLES).parse_args().tables:
        seeds = SEEDS_BALANCED if table == "diabetes_balanced" else SEEDS
        save("tabular", table, TABLES[table](), seeds=list(seeds))
