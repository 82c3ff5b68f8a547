-- Notifications; made when the first one is kept, so that a file without any costs nothing.
-- `due` is when one is to be looked at again; `body` is the rest of the row as JSON.

CREATE TABLE notice (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  run TEXT NOT NULL,
  status TEXT NOT NULL,
  version INTEGER NOT NULL,
  at REAL NOT NULL,
  due REAL,
  tenant TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX notice_run ON notice (run);
CREATE INDEX notice_tenant ON notice (tenant) WHERE tenant <> '';
CREATE INDEX notice_due ON notice (due) WHERE due IS NOT NULL;
