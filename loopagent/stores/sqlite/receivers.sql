-- Receivers whose latest notification was given up.

CREATE TABLE receiver (
  target TEXT PRIMARY KEY,
  failures INTEGER NOT NULL,
  at REAL NOT NULL,
  error TEXT NOT NULL,
  disabled_at REAL
) WITHOUT ROWID;
