-- What single people put off and like to look at. `until` is when a thing is over, or null.

CREATE TABLE desk (
  owner text NOT NULL,
  kind text NOT NULL,
  name text NOT NULL,
  until double precision,
  body text NOT NULL,
  PRIMARY KEY (owner, kind, name)
);
