"""Certificates of servers and clients on 127.0.0.1."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def certificate(folder: Path) -> Path:
    """A PEM file with a new key and its self-signed certificate for 127.0.0.1.

    The file also holds the authority that signed the certificate.
    """
    return _signed(folder / "certificate.pem", "127.0.0.1", None)


def client_certificate(authority: Path, name: str) -> Path:
    """A PEM file with a new key and its certificate for `name`, signed by the authority of `certificate`."""
    return _signed(authority.parent / f"{name}.pem", name, authority.read_bytes())


def _signed(file: Path, common_name: str, authority: bytes | None) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
    signer, issuer = key, name
    if authority is not None:
        loaded = serialization.load_pem_private_key(authority, None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        signer, issuer = loaded, x509.load_pem_x509_certificate(authority).subject
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=authority is None, path_length=None), True)
        .sign(signer, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return file
