"""Action files out of what others wrote: OpenAPI documents and curl commands.

`document` and `schemas` read, `operations` and `auth` make drafts, `merging` and `folder` bring them into a project.
Nothing here sends a request, and nothing that is imported can be called before a person has enabled it.
"""
