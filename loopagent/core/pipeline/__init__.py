"""Pipelines: data goes through stages that the engine runs by itself.

`checker` looks at a pipeline as a whole before anything runs, `walker` runs it as far as what is known allows, and
`diagnosis` says what became of it. Both loops can have one as their body:

1. when the reply comes: `check_pipeline(request, run, names=…, where=…)`;
2. to run it: `walk(request, scope=…, key="each.3.pipe", results=…, call=maker(run),
   bounds=bounds_of(run), at=…, memo=…)` gives a `Value`, a `Failed`, or the calls it `Needs`.

A `Failed` may come while calls are `under_way`: they have to settle before the step ends.
"""
