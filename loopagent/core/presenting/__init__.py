"""Presenting a reply while it streams: growing text becomes pieces of fields that a person can follow.

`presenter` is the way in. `opening` finds the object in the text, `scanner` reads it as it comes, `parts` says
what of it is shown. What counts is the whole reply, as `core.reply` reads it; the end of a stream is compared
with that, so that what was shown and what is true never differ.

Source: events and states, section 4.
"""
