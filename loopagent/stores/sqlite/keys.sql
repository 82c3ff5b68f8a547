-- API keys and sessions; only hashes of both. `tenant` is null for a key that reaches all of them;
-- `person` is JSON, of a session that began at a provider.

CREATE TABLE api_key (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  hash TEXT NOT NULL,
  name TEXT NOT NULL,
  tenant TEXT,
  user TEXT NOT NULL,
  scopes TEXT NOT NULL,
  created_at REAL NOT NULL,
  last_used_at REAL,
  revoked_at REAL
);

CREATE TABLE session (
  hash TEXT PRIMARY KEY,
  key_id TEXT NOT NULL,
  created_at REAL NOT NULL,
  expires_at REAL NOT NULL,
  tenant TEXT,
  person TEXT
) WITHOUT ROWID;
