"""A mail server that keeps its mail; it refuses recipients of `refused.example`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_string, policy
from email.message import EmailMessage


class MailServer:
    """SMTP as far as a client needs it."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], EmailMessage]] = []
        self.port = 0

    def texts(self) -> list[tuple[str, str]]:
        """The subject and the text of each mail."""
        return [(mail["Subject"], mail.get_body().get_content()) for _, mail in self.mails]  # type: ignore[union-attr]

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["MailServer"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def say(line: str) -> None:
            writer.write(f"{line}\r\n".encode())

        recipients: list[str] = []
        say("220 ready")
        while line := (await reader.readline()).decode().strip():
            command = line.split(":")[0].split(" ")[0].upper()
            if command == "EHLO":
                say("250 SMTPUTF8")
            elif command == "RCPT" and "refused.example" in line:
                say("550 no such mailbox")
            elif command == "DATA":
                say("354 go on")
                text = (await reader.readuntil(b"\r\n.\r\n")).decode().removesuffix(".\r\n")
                self.mails.append(
                    (recipients, message_from_string(text, EmailMessage, policy=policy.default))
                )
                recipients = []
                say("250 taken")
            elif command == "QUIT":
                say("221 bye")
                break
            else:
                if command == "RCPT":
                    recipients.append(line.partition("<")[2].partition(">")[0])
                say("250 ok")
            await writer.drain()
        writer.close()
