"""The pages: inbox, cards, runs. They call the app's verbs as the HTTP API does, and listen to its event stream."""
