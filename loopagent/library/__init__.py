"""Actions that are built in the page: drafts, published versions, and who is given them.

`texts` reads what was typed and says what is wrong with it, `definitions` pins what a run is given and finds it
again, `trying` shows and sends test calls, and `service` is what HTTP, the pages and the command line use.
"""
