"""
==============
Votes on texts
==============

A vectorizer that is fitted on private texts publishes words of these texts, such as
names. A vectorizer of public texts, or one that hashes words, publishes no private
word. This example compares both, with votes and with mean scores of teachers.
"""

# %%
# Made-up notes
# -------------
#
# A note has fourteen common words, five words of a ward, and the name of a patient. A
# word is of the right ward with probability 0.8. No patient has two notes.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.exceptions import PrivacyLeakWarning, PublicDataWarning

HEART = "murmur angina stent palpitations valve rhythm infarct aorta oedema"
LUNG = "cough wheeze asthma sputum inhaler pneumonia smoker oxygen pleura"
COMMON = """patient reports since days night morning pain worse better seen today with
known history no fever plan review week follow family normal exam stable age"""
rng = np.random.default_rng(0)


def notes(n_notes):
    """Return a table with one column of texts, their wards, and names of patients."""
    is_heart = rng.random(n_notes) < 0.5
    texts, names = [], []
    for heart in is_heart:
        of_heart = (rng.random(5) < 0.8) == heart
        words = np.where(
            of_heart, rng.choice(HEART.split(), 5), rng.choice(LUNG.split(), 5)
        )
        names.append("".join(rng.choice([*"bdfklmnrst", *"aeiou"], 8)))
        words = rng.permutation([*words, *rng.choice(COMMON.split(), 14)])
        texts.append(" ".join([*words, names[-1]]))
    return pd.DataFrame({"note": texts}), np.where(is_heart, "heart", "lung"), names


X, y, patients = notes(4000)
X_public, _, _ = notes(1000)
X_test, y_test, _ = notes(2000)
print(X["note"][0])

# %%
# Names in a vocabulary
# ---------------------
#
# A vectorizer reads one named column of a table. ``min_df=5`` leaves out words that are
# in fewer than five public notes, such as names.

private = make_column_transformer((TfidfVectorizer(), "note")).fit(X)
public = make_column_transformer((TfidfVectorizer(min_df=5), "note")).fit(X_public)
for place, vectorizer in {"private": private, "public": public}.items():
    stored = {name.split("__")[1] for name in vectorizer.get_feature_names_out()}
    print(f"fitted on {place} notes: {len(stored & set(patients))} names of patients")

# %%
# Public words and hashed words
# -----------------------------
#
# As a representation for teachers, ``words`` is fitted on public notes in each fit. A
# student that learns from votes gets texts, and needs ``words`` too. ``TruncatedSVD``
# reduces words to 30 numbers, as a teacher has few notes. Hashing learns nothing from
# data, so private notes may be hashed before the fit.

words = make_pipeline(public, TruncatedSVD(30, random_state=0))
student = make_pipeline(words, LogisticRegression())
with_words = {
    "scores": {"representation": words},
    "gnmax": {"representation": words, "student": student},
}
hashing = make_column_transformer((HashingVectorizer(n_features=1024), "note"))
hashed = [hashing.fit_transform(rows) for rows in (X, X_public, X_test)]

warnings.simplefilter("ignore", PublicDataWarning)  # texts are read as categories
warnings.simplefilter("ignore", PrivacyLeakWarning)  # many fits on the same rows
EPSILONS = [0.5, 1.0, 2.0, 4.0]
figure, axis = plt.subplots(figsize=(6.5, 4), layout="constrained")
for mechanism, color in {"scores": "#2277cc", "gnmax": "#d55e00"}.items():
    for kind, rows, parameters, line in [
        ("public words", (X, X_public, X_test), with_words[mechanism], "o-"),
        ("hashed words", hashed, {}, "s--"),
    ]:
        accuracies = []
        for epsilon in EPSILONS:
            clf = PATEClassifier(
                mechanism=mechanism, n_teachers=120, epsilon=epsilon, **parameters
            )
            clf.set_params(classes=["heart", "lung"], random_state=0)
            clf.fit(rows[0], y, X_public=PublicData(rows[1]))
            accuracies.append(clf.score(rows[2], y_test))
        label = f"{mechanism}, {kind}"
        print(f"{label}:", *(f"{one:.2f}" for one in accuracies))
        axis.plot(EPSILONS, accuracies, line, color=color, label=label)
plain = make_pipeline(private, LogisticRegression()).fit(X, y).score(X_test, y_test)
axis.axhline(plain, color="#777777", label="private words, no privacy")
axis.set(xlabel="epsilon", ylabel="accuracy")
axis.legend()
plt.show()

# %%
# At epsilon 0.5, mean scores are more accurate than votes on public words. Hashed words
# are about as accurate as public words. Each point is one fit, and varies by noise.
