"""Low-code actions: `*.action.yaml` files, read, checked, run and tested.

`format` says what a file may hold, `reading` and `checks` complain about it, `build` makes an action of it; each kind
has a module of its own.
"""
