"""Signing in to the pages at an OpenID provider: authorization code with PKCE; an extra, `loopagent[oidc]`."""
