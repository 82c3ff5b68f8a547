-- The library: actions that are built in the page, their versions, what runs were started with, and who did what.

CREATE TABLE built_action (
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  revision INTEGER NOT NULL,
  published INTEGER,
  agents TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (tenant, name)
);

CREATE TABLE built_version (
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  number INTEGER NOT NULL,
  hash TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (tenant, name, number)
);

CREATE TABLE definition (
  tenant TEXT NOT NULL,
  hash TEXT NOT NULL,
  name TEXT NOT NULL,
  body TEXT NOT NULL,
  given_at REAL NOT NULL,
  PRIMARY KEY (tenant, hash)
);

CREATE TABLE library_change (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX library_change_name ON library_change (tenant, name);
