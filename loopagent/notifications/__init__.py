"""People and programs are told when a request opens or a run ends: signed webhooks and mail."""
