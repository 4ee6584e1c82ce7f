"""Serve fixture sites inside TLS, with a certificate that no browser trusts."""

import asyncio
import datetime as dt
import ssl
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from tempfile import NamedTemporaryFile

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


@asynccontextmanager
async def behind_tls(*ports):
    """Serve the same servers behind TLS; yield the ports."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + dt.timedelta(days=1))
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem += builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with NamedTemporaryFile() as file:
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)

    async def pump(reader, writer):
        with suppress(ConnectionError):
            while received := await reader.read(65_536):
                writer.write(received)
        writer.close()

    async with AsyncExitStack() as stack:
        served = []
        for port in ports:

            async def forward(reader, writer, port=port):
                inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
                await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))

            server = await asyncio.start_server(forward, "127.0.0.1", 0, ssl=context)
            stack.callback(server.close)
            served.append(server.sockets[0].getsockname()[1])
        yield served
