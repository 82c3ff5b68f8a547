"""The editor of an action: one document, as a text and as a form, each of which changes the other."""
