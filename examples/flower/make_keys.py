"""Keys for a federation on this machine: an authority, the server's certificate, and one key pair for each node.

The keys are for trials only. In a real federation each node makes its own key pair and sends the public half, and the
certificate comes from your authority.
"""

import datetime
import ipaddress
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

KEYS = Path("keys")
PEM = serialization.Encoding.PEM
DAYS = 30


def private_key(name: str) -> ec.EllipticCurvePrivateKey:
    """Make a key pair; only its owner can read the private half."""
    key = ec.generate_private_key(ec.SECP384R1())
    form = serialization.PrivateFormat.OpenSSH if name.startswith("node") else serialization.PrivateFormat.PKCS8
    text = key.private_bytes(PEM, form, serialization.NoEncryption())
    with open(os.open(KEYS / f"{name}.key", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(text)
    return key


def certificate(name: str, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey) -> None:
    """Sign a certificate of the authority itself, or of the server at 127.0.0.1."""
    now, authority = datetime.datetime.now(datetime.UTC), name == "authority"
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if not authority:
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    (KEYS / f"{name}.pem").write_bytes(builder.sign(signer, hashes.SHA384()).public_bytes(PEM))


def connect() -> None:
    """Write the server's address and the trusted certificate for Flower's command line, which needs the whole path."""
    config = Path("home/config.toml")
    known = config.read_text().split("\n[superlink.secure]")[0]
    path = (KEYS / "authority.pem").resolve()
    config.write_text(f'{known}\n[superlink.secure]\naddress = "127.0.0.1:8000"\nroot-certificates = "{path}"\n')


KEYS.mkdir(exist_ok=True)
connect()
authority = private_key("authority")
certificate("authority", authority, authority)
certificate("server", private_key("server"), authority)
for node in range(3):
    public = private_key(f"node{node}").public_key()
    text = public.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    (KEYS / f"node{node}.pub").write_bytes(text)
