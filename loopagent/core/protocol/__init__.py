"""The wire types of the reply protocol, one file a subject."""
