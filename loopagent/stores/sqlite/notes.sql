-- Notes of agents; made when the first one is kept, so that a file without any costs nothing.
-- `folded` is the text without case, accents and punctuation; `body` is the rest of the note as JSON.

CREATE TABLE note (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  tenant TEXT NOT NULL,
  agent TEXT NOT NULL,
  user TEXT NOT NULL,
  scope TEXT NOT NULL,
  type TEXT NOT NULL,
  status TEXT NOT NULL,
  run TEXT NOT NULL,
  expires_at REAL,
  folded TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX note_place ON note (tenant, agent, user);
CREATE INDEX note_run ON note (run);
CREATE INDEX note_expires ON note (expires_at) WHERE expires_at IS NOT NULL;

-- `place` is one word, a hash of who may find the note, so that the notes of others are not even looked at.
CREATE VIRTUAL TABLE note_text USING fts5 (place, terms, tokenize = 'unicode61');
