-- Rows name each other by small numbers; the long ids of runs and requests stand in one place each.

CREATE TABLE spec (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  hash text NOT NULL UNIQUE,
  body text NOT NULL
);

-- `person` is the user whose conversation it is; `last` is the number of the last message, never given again.
CREATE TABLE conversation (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant text NOT NULL,
  person text NOT NULL,
  id text NOT NULL,
  title text NOT NULL,
  created_at double precision NOT NULL,
  updated_at double precision NOT NULL,
  last integer NOT NULL,
  UNIQUE (tenant, person, id)
);

-- `root` is null for a run that is a root; `seq` counts the public events of a root's whole tree.
-- `due` is when a worker has something to do for it, in seconds since the epoch (0: at once), or null.
-- `log_gone`: its log was removed, the run itself is kept. Room is left on each page, so that a commit needs no new index entries.
CREATE TABLE run (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL UNIQUE,
  root bigint,
  parent bigint,
  spec bigint NOT NULL REFERENCES spec,
  agent text NOT NULL,
  status text NOT NULL,
  due double precision,
  version integer NOT NULL,
  seq bigint NOT NULL,
  shown text NOT NULL,
  turn integer NOT NULL,
  created_at double precision NOT NULL,
  updated_at double precision NOT NULL,
  owner text,
  leased_until double precision,
  conversation bigint REFERENCES conversation,
  tenant text NOT NULL,
  log_gone boolean NOT NULL DEFAULT false,
  title text NOT NULL,
  metadata text,
  state bytea NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX run_agent ON run (agent, key);
CREATE INDEX run_tenant ON run (tenant, key) WHERE tenant <> '';
CREATE INDEX run_status ON run (status, key);
CREATE INDEX run_ended ON run (updated_at) WHERE root IS NULL AND status <> 'running';
CREATE INDEX run_root ON run (root) WHERE root IS NOT NULL;
CREATE INDEX run_due ON run (due) WHERE due IS NOT NULL;
CREATE INDEX run_conversation ON run (conversation) WHERE conversation IS NOT NULL;
CREATE INDEX run_in_line ON run (key) WHERE shown = 'queued';

-- One row a transaction. `root` is the run at the top of the tree, whose numbers the events have.
CREATE TABLE log (
  run bigint NOT NULL,
  version integer NOT NULL,
  root bigint NOT NULL,
  first_seq bigint NOT NULL,
  last_seq bigint NOT NULL,
  first_message integer NOT NULL,
  messages integer NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (run, version)
);
ALTER TABLE log ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX log_events ON log (root, last_seq) WHERE last_seq >= first_seq;

CREATE TABLE said (
  conversation bigint NOT NULL,
  sequence integer NOT NULL,
  run bigint NOT NULL,
  role text NOT NULL,
  at double precision NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (conversation, sequence)
);
CREATE INDEX said_run ON said (run);

-- Results of the open step that its snapshot does not carry; `first` is the place of a part's first result.
CREATE TABLE outcome (
  run bigint NOT NULL,
  first integer NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (run, first)
);

-- The payload of a run whose snapshot does not carry it.
CREATE TABLE payload (
  run bigint PRIMARY KEY,
  body bytea NOT NULL
);

CREATE TABLE request (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL UNIQUE,
  run bigint NOT NULL,
  status text NOT NULL,
  created_at double precision NOT NULL,
  resolved_at double precision,
  body text NOT NULL,
  resolution text,
  holder text NOT NULL DEFAULT '',
  held_at double precision
);
CREATE INDEX request_run ON request (run);
CREATE INDEX request_open ON request (key) WHERE status = 'open';
CREATE INDEX request_decided ON request (resolved_at, key) WHERE status = 'resolved';

CREATE TABLE content (
  hash text PRIMARY KEY,
  body bytea NOT NULL
);

CREATE TABLE artifact (
  run bigint NOT NULL REFERENCES run,
  hash text NOT NULL REFERENCES content,
  media_type text NOT NULL,
  PRIMARY KEY (run, hash)
);
CREATE INDEX artifact_hash ON artifact (hash);

-- What a run knows of an artifact; `folded` is its name without case.
CREATE TABLE artifact_entry (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run bigint NOT NULL REFERENCES run,
  tenant text NOT NULL,
  folded text NOT NULL,
  handle text NOT NULL,
  artifact_id text NOT NULL,
  name text NOT NULL,
  kind text NOT NULL,
  version integer NOT NULL,
  media_type text NOT NULL,
  size bigint NOT NULL,
  turn integer NOT NULL,
  call_id text NOT NULL,
  created_at double precision NOT NULL
);
CREATE INDEX artifact_entry_run ON artifact_entry (run);
CREATE INDEX artifact_entry_content ON artifact_entry (artifact_id);
CREATE INDEX artifact_entry_tenant ON artifact_entry (tenant, key);

CREATE TABLE answer (
  name text PRIMARY KEY,
  at double precision NOT NULL,
  fingerprint text NOT NULL,
  status integer NOT NULL,
  headers text NOT NULL,
  body text NOT NULL
);
CREATE INDEX answer_at ON answer (at);

-- `folded` is the text without case, accents and punctuation; `body` is the whole note as JSON. `words` are those of
-- the text, and one that stands for who may find the note, so that the notes of others are not even looked at.
CREATE TABLE note (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL UNIQUE,
  tenant text NOT NULL,
  agent text NOT NULL,
  person text NOT NULL,
  scope text NOT NULL,
  type text NOT NULL,
  status text NOT NULL,
  run text NOT NULL,
  expires_at double precision,
  folded text NOT NULL,
  body text NOT NULL,
  words tsvector NOT NULL
);
CREATE INDEX note_place ON note (tenant, agent, person);
CREATE INDEX note_run ON note (run);
CREATE INDEX note_expires ON note (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX note_words ON note USING gin (words);

-- `due` is when a trigger is to be looked at; `body` is the rest of the row as JSON.
CREATE TABLE trigger_state (
  name text PRIMARY KEY,
  version integer NOT NULL,
  due double precision,
  body text NOT NULL
);

CREATE TABLE delivery (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL UNIQUE,
  trigger text NOT NULL,
  event_id text NOT NULL,
  status text NOT NULL,
  at double precision NOT NULL,
  dedupe text NOT NULL,
  body text NOT NULL
);
CREATE INDEX delivery_event ON delivery (trigger, event_id);
CREATE INDEX delivery_same ON delivery (trigger, dedupe, at) WHERE dedupe <> '';
CREATE INDEX delivery_at ON delivery (trigger, at);

-- Who is to be told of what. `due` is when one is to be looked at again; `body` is the rest of the row as JSON.
CREATE TABLE notice (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL UNIQUE,
  run text NOT NULL,
  status text NOT NULL,
  version integer NOT NULL,
  at double precision NOT NULL,
  due double precision,
  tenant text NOT NULL,
  body text NOT NULL
);
CREATE INDEX notice_run ON notice (run);
CREATE INDEX notice_tenant ON notice (tenant) WHERE tenant <> '';
CREATE INDEX notice_due ON notice (due) WHERE due IS NOT NULL;

-- Receivers whose latest notification was given up.
CREATE TABLE receiver (
  target text PRIMARY KEY,
  failures integer NOT NULL,
  at double precision NOT NULL,
  error text NOT NULL,
  disabled_at double precision
);

-- API keys and sessions; only hashes of both. `tenant` is null for a key that reaches all of them;
-- `person` of a session is JSON, where it began at a provider.
CREATE TABLE api_key (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL UNIQUE,
  hash text NOT NULL,
  name text NOT NULL,
  tenant text,
  person text NOT NULL,
  scopes text NOT NULL,
  created_at double precision NOT NULL,
  last_used_at double precision,
  revoked_at double precision
);

CREATE TABLE session (
  hash text PRIMARY KEY,
  key_id text NOT NULL,
  created_at double precision NOT NULL,
  expires_at double precision NOT NULL,
  tenant text,
  person text
);

-- The library: actions that are built in the page, their versions, what runs were started with, and who did what.
CREATE TABLE built_action (
  tenant text NOT NULL,
  name text NOT NULL,
  revision integer NOT NULL,
  published integer,
  agents text NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (tenant, name)
);

CREATE TABLE built_version (
  tenant text NOT NULL,
  name text NOT NULL,
  number integer NOT NULL,
  hash text NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (tenant, name, number)
);

CREATE TABLE definition (
  tenant text NOT NULL,
  hash text NOT NULL,
  name text NOT NULL,
  body text NOT NULL,
  given_at double precision NOT NULL,
  PRIMARY KEY (tenant, hash)
);

CREATE TABLE library_change (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL UNIQUE,
  tenant text NOT NULL,
  name text NOT NULL,
  body text NOT NULL
);
CREATE INDEX library_change_name ON library_change (tenant, name);

-- What single people put off and like to look at. `until` is when a thing is over, or null.
CREATE TABLE desk (
  owner text NOT NULL,
  kind text NOT NULL,
  name text NOT NULL,
  until double precision,
  body text NOT NULL,
  PRIMARY KEY (owner, kind, name)
);
