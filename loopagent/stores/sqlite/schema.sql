-- Version 1. Rows name each other by small numbers; the long ids of runs and requests stand in one place each.

CREATE TABLE spec (
  key INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  body TEXT NOT NULL
);

-- `root` is null for a run that is a root; `seq` counts the public events of a root's whole tree.
-- `due` is when a worker has something to do for it, in seconds since the epoch (0: at once), or null.
-- `log_from` is the version of the first log row that is kept. `state` comes last: lists read rows without it.
CREATE TABLE run (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  root INTEGER,
  parent INTEGER,
  spec INTEGER NOT NULL,
  agent TEXT NOT NULL,
  status TEXT NOT NULL,
  due REAL,
  version INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  shown TEXT NOT NULL,
  turn INTEGER NOT NULL,
  created_at REAL NOT NULL,
  updated_at REAL NOT NULL,
  owner TEXT,
  leased_until REAL,
  log_from INTEGER NOT NULL DEFAULT 1,
  conversation INTEGER,
  tenant TEXT NOT NULL,
  title TEXT NOT NULL,
  metadata TEXT,
  state BLOB NOT NULL
);
CREATE INDEX run_agent ON run (agent);
CREATE INDEX run_tenant ON run (tenant) WHERE tenant <> '';
CREATE INDEX run_status ON run (status);
CREATE INDEX run_ended ON run (updated_at) WHERE root IS NULL AND status <> 'running';
CREATE INDEX run_root ON run (root) WHERE root IS NOT NULL;
CREATE INDEX run_due ON run (due) WHERE due IS NOT NULL;
CREATE INDEX run_conversation ON run (conversation) WHERE conversation IS NOT NULL;
CREATE INDEX run_in_line ON run (shown) WHERE shown = 'queued';

-- `last` is the number of the last message; a number is never given again.
CREATE TABLE conversation (
  key INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  user TEXT NOT NULL,
  id TEXT NOT NULL,
  title TEXT NOT NULL,
  created_at REAL NOT NULL,
  updated_at REAL NOT NULL,
  last INTEGER NOT NULL,
  UNIQUE (tenant, user, id)
);

CREATE TABLE said (
  conversation INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  run INTEGER NOT NULL,
  role TEXT NOT NULL,
  at REAL NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (conversation, sequence)
) WITHOUT ROWID;
CREATE INDEX said_run ON said (run);

-- What was committed in one go. `key` is the run's key times 2^24 plus the first version in it, so a run's rows lie
-- together.
CREATE TABLE log (
  key INTEGER PRIMARY KEY,
  first_seq INTEGER NOT NULL,
  first_message INTEGER NOT NULL,
  body BLOB NOT NULL
);

-- Results of the open step that its snapshot does not carry; `first` is the place of a part's first result.
CREATE TABLE outcome (
  run INTEGER NOT NULL,
  first INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (run, first)
) WITHOUT ROWID;

-- The payload of a run whose snapshot does not carry it.
CREATE TABLE payload (
  run INTEGER PRIMARY KEY,
  body BLOB NOT NULL
);

CREATE TABLE request (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  run INTEGER NOT NULL,
  status TEXT NOT NULL,
  created_at REAL NOT NULL,
  resolved_at REAL,
  body TEXT NOT NULL,
  resolution TEXT,
  holder TEXT NOT NULL DEFAULT '',
  held_at REAL
);
CREATE INDEX request_run ON request (run);
CREATE INDEX request_open ON request (status) WHERE status = 'open';
CREATE INDEX request_decided ON request (resolved_at, key) WHERE status = 'resolved';

CREATE TABLE content (
  key INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  body BLOB NOT NULL
);

CREATE TABLE artifact (
  run INTEGER NOT NULL,
  content INTEGER NOT NULL,
  media_type TEXT NOT NULL,
  PRIMARY KEY (run, content)
) WITHOUT ROWID;
CREATE INDEX artifact_content ON artifact (content);

-- What a run knows of an artifact; `folded` is its name without case.
CREATE TABLE artifact_entry (
  key INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  folded TEXT NOT NULL,
  handle TEXT NOT NULL,
  artifact_id TEXT NOT NULL,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  version INTEGER NOT NULL,
  media_type TEXT NOT NULL,
  size INTEGER NOT NULL,
  turn INTEGER NOT NULL,
  call_id TEXT NOT NULL,
  created_at REAL NOT NULL
);
CREATE INDEX artifact_entry_run ON artifact_entry (run);
CREATE INDEX artifact_entry_content ON artifact_entry (artifact_id);

CREATE TABLE answer (
  key INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  at REAL NOT NULL,
  fingerprint TEXT NOT NULL,
  status INTEGER NOT NULL,
  headers TEXT NOT NULL,
  body TEXT NOT NULL
);
