-- Triggers; made when the first one is saved, so that a file without any costs nothing.
-- `due` is when a trigger is to be looked at; `body` is the rest of the row as JSON.

CREATE TABLE trigger_state (
  name TEXT PRIMARY KEY,
  version INTEGER NOT NULL,
  due REAL,
  body TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE delivery (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  "trigger" TEXT NOT NULL,
  event_id TEXT NOT NULL,
  status TEXT NOT NULL,
  at REAL NOT NULL,
  dedupe TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX delivery_event ON delivery ("trigger", event_id);
CREATE INDEX delivery_same ON delivery ("trigger", dedupe, at) WHERE dedupe <> '';
CREATE INDEX delivery_at ON delivery ("trigger", at);
