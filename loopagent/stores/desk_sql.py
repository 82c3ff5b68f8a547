"""The statements about desks, in words that SQLite and PostgreSQL both understand; `$1` is a place in either."""

from __future__ import annotations

from typing import Final


TABLE: Final = """
CREATE TABLE IF NOT EXISTS desk (
  owner text NOT NULL,
  kind text NOT NULL,
  name text NOT NULL,
  until double precision,
  body text NOT NULL,
  PRIMARY KEY (owner, kind, name)
)
"""
FORGET: Final = "DELETE FROM desk WHERE owner = $1 AND until <= $2"
PUT: Final = """
INSERT INTO desk (owner, kind, name, until, body) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (owner, kind, name) DO UPDATE SET until = excluded.until, body = excluded.body
"""
LIST: Final = "SELECT owner, kind, name, until, body FROM desk WHERE owner = $1 AND kind = $2"
DELETE: Final = "DELETE FROM desk WHERE owner = $1 AND kind = $2 AND name = $3 RETURNING name"
