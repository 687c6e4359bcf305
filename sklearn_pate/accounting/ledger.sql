-- Tables of a ledger, of the version FORMAT_VERSION. No comment has a semicolon.

CREATE TABLE budget (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    unit TEXT,
    relation TEXT,
    created TEXT NOT NULL,
    identity TEXT NOT NULL
);
-- `spent` is the exact sum of all costs, as a fraction: a charge reads no other entry.
CREATE TABLE limits (
    renyi_order REAL PRIMARY KEY,
    value REAL NOT NULL CHECK (value > 0),
    spent TEXT NOT NULL DEFAULT '0'
);
CREATE TABLE charges (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    who TEXT NOT NULL,
    dataset TEXT NOT NULL,
    fit TEXT NOT NULL,
    description TEXT NOT NULL,
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    orders BLOB NOT NULL,
    curve BLOB NOT NULL
);
CREATE TABLE costs (
    charge INTEGER NOT NULL REFERENCES charges (id),
    renyi_order REAL NOT NULL REFERENCES limits (renyi_order),
    value REAL NOT NULL CHECK (value >= 0),
    PRIMARY KEY (charge, renyi_order)
);
-- Draws on an entry of a fit. `pending` is set from before a draw until its answers are
-- stored: no other process draws on an entry that is pending.
CREATE TABLE draws (
    charge INTEGER PRIMARY KEY REFERENCES charges (id),
    fit TEXT NOT NULL,
    pending INTEGER NOT NULL,
    n_drawn INTEGER NOT NULL,
    n_given INTEGER NOT NULL
);
CREATE INDEX draws_of_fit ON draws (fit);
CREATE TABLE answers (
    fit TEXT NOT NULL,
    row INTEGER NOT NULL,
    answer INTEGER NOT NULL,
    histogram BLOB,
    PRIMARY KEY (fit, row)
) WITHOUT ROWID;
