"""Log records whose text controls no terminal, whichever handler writes them and wherever their file is shown."""

from __future__ import annotations

import logging

from waygraph.core.text import escape_controls


class EscapedRecord(logging.LogRecord):
    """A log record that may quote a page, a model or a server: control characters of its message are escaped."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        if self.exc_info and self.exc_info[0] is not None:
            # Formatters write this text, if it is set, in place of the exception and its message.
            self.exc_text = escape_controls(logging.Formatter().formatException(self.exc_info))

    def getMessage(self) -> str:  # noqa: N802 - the name is that of the base class
        """Return the message with its arguments, escaped."""
        return escape_controls(super().getMessage())


def escape_log_records() -> None:
    """Make all log records of this process `EscapedRecord`s: call it where a process begins."""
    logging.setLogRecordFactory(EscapedRecord)
