"""Keys of sites, and masks that cancel in the sum of their replies."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting._value_checks import optional_module

_KEY_BYTES = 32


def _primitives(name: str) -> Any:
    return optional_module(f"cryptography.hazmat.primitives.{name}", "cryptography")


def _derived(secret: bytes, salt: bytes, purpose: bytes) -> bytes:
    """Derive a key by HKDF, which tells nothing about another purpose or salt."""
    HKDF = _primitives("kdf.hkdf").HKDF
    sha256 = _primitives("hashes").SHA256()
    return HKDF(sha256, _KEY_BYTES, salt, purpose).derive(secret)  # type: ignore[no-any-return]


class SiteKey:
    """Secret key of a site for one study, from the secret key of its ledger."""

    def __init__(self, ledger_key: bytes, study: bytes, site: str) -> None:
        purpose = b"sklearn_pate site\0" + site.encode()
        x25519 = _primitives("asymmetric.x25519")
        self._key = x25519.X25519PrivateKey.from_private_bytes(
            _derived(ledger_key, study, purpose)
        )
        self._read = x25519.X25519PublicKey.from_public_bytes

    @property
    def public(self) -> str:
        """Public key in hexadecimal digits."""
        return str(self._key.public_key().public_bytes_raw().hex())

    def masks(
        self,
        public_keys: dict[str, str],
        site: str,
        study: bytes,
        request: bytes,
        n: int,
    ) -> NDArray[np.uint64]:
        """Return the sum of the masks of this site for a request, modulo 2^64.

        Each pair of sites has a mask, which the first of them adds and the second
        subtracts. It depends on the whole request: other requests have other masks. It
        also depends on both names and keys, as different public keys can have one
        secret, so that the masks of a site would cancel among themselves. Raises
        ValueError for a key without a secret.
        """
        ciphers = _primitives("ciphers")
        total = np.zeros(n, dtype=np.uint64)
        for other, key in public_keys.items():
            if other == site:
                continue
            try:
                secret = self._key.exchange(self._read(bytes.fromhex(key)))
            except ValueError:
                raise ValueError(
                    f"The public key of {other} cannot be used; ask it to join again."
                ) from None
            pair = sorted([[site, self.public], [other, key]])
            purpose = json.dumps(["sklearn_pate mask", request.hex(), pair]).encode()
            of_pair = _derived(secret, study, purpose)
            cipher = ciphers.Cipher(
                ciphers.algorithms.ChaCha20(of_pair, bytes(16)), None
            )
            mask = np.frombuffer(cipher.encryptor().update(bytes(8 * n)), dtype="<u8")
            total = total + mask if site < other else total - mask
        return total
