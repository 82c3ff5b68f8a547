"""Files in the body of a request."""

from __future__ import annotations

import base64
import binascii

from pydantic import Field

from loopagent.attachments import Attachment
from loopagent.errors import RequestError
from loopagent.http.body import Body


class NewAttachment(Body):
    """A file for a run."""

    name: str = Field(min_length=1, max_length=255)
    """File name, without folders."""
    media_type: str = Field(default="", max_length=255)
    """Its type; empty to tell it from the name, or from the content."""
    data: str
    """Its content as base64 without line breaks."""

    def opened(self, position: int) -> Attachment:
        """The file itself.

        Raises:
            RequestError: `invalid_attachments`: its data is no base64.
        """
        try:
            content = base64.b64decode(self.data.encode(), validate=True)
        except (binascii.Error, ValueError):
            detail = {
                "pointer": f"/attachments/{position}/data",
                "detail": "must be base64 without line breaks",
            }
            text = f"The data of attachment {self.name!r} is no base64."
            raise RequestError("invalid_attachments", text, errors=[detail]) from None
        return Attachment(self.name, content, self.media_type)


class NewFiles(Body):
    """Files for a run that has not ended."""

    run_id: str = Field(min_length=1, max_length=200)
    """The run."""
    attachments: list[NewAttachment] = Field(default=[], max_length=1_000)
    """The files; in a form they come as parts of this name."""
