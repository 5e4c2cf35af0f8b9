"""Rotation: what comes after which certificate, and when."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.serving.certificates.issuing import (
    MOST,
    Authority,
    Material,
    UnusableError,
    names_of,
    signed,
)
from hedgerow.serving.certificates.rotation import Rules, due, first, following
from serving.certs import NAMES

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
VALIDITY = 90 * DAY
RULES = Rules(NAMES, VALIDITY)


@pytest.fixture(scope="module")
def made() -> Material:
    return first(RULES, NOW)


class TestFirst:
    def test_it_is_signed_by_the_one_authority_for_all_names(self, made: Material):
        assert made.bundle == (made.signer,)
        assert made.coming is None
        assert names_of(made.leaf.certificate) == set(NAMES)
        assert made.leaf.certificate.not_valid_after_utc == NOW + VALIDITY
        assert made.bundle[0].not_valid_after_utc == NOW + VALIDITY

    def test_what_is_known_is_served_and_trusted_on(self, made: Material):
        again = first(RULES, NOW + DAY, made)

        assert again.leaf == made.leaf
        assert again.bundle[1:] == made.bundle
        assert again.coming is not None
        assert signed(again.coming.certificate, again.bundle[0])

    def test_what_is_known_but_expired_is_not(self, made: Material):
        again = first(RULES, NOW + VALIDITY, made)

        assert again.leaf != made.leaf
        assert again.bundle == (again.signer,)


class TestFollowing:
    @pytest.mark.parametrize("day", [0, 30, 44])
    def test_nothing_follows_while_all_is_well(self, made: Material, day: int):
        assert following(made, RULES, NOW + day * DAY, trusted=True) is None

    def test_halfway_another_authority_is_trusted_before_it_counts(self, made: Material):
        then = NOW + 45 * DAY
        announced = following(made, RULES, then, trusted=True)

        assert announced is not None
        assert announced.leaf == made.leaf
        assert announced.coming is not None
        assert announced.bundle[1:] == made.bundle
        assert following(announced, RULES, then, trusted=False) is None
        renewed = following(announced, RULES, then, trusted=True)
        assert renewed == Material(announced.coming, announced.bundle)
        assert renewed.signer == announced.bundle[0]
        assert renewed.leaf.certificate.not_valid_after_utc == then + VALIDITY

    def test_no_authority_signs_twice(self, made: Material):
        """Its key is kept nowhere, so nobody can have it sign once more."""
        known, now, signers = made, NOW, set()
        for _ in range(40):
            now += 10 * DAY
            while wanted := following(known, RULES, now, trusted=True):
                known = wanted
            signers.add((known.signer, known.leaf.certificate))

        assert len(signers) > 4
        assert len({signer for signer, _ in signers}) == len(signers)
        assert len(known.bundle) <= 2

    def test_replicas_renew_at_different_times(self, made: Material):
        times = {due(made, replace(RULES, draw=draw)) for draw in (0, 0.5, 0.99)}

        assert len(times) == 3
        assert max(times) - min(times) < VALIDITY / 12

    def test_it_is_renewed_for_other_names(self, made: Material):
        rules = replace(RULES, names=(*NAMES, "more"))
        announced = following(made, rules, NOW, trusted=True)

        assert announced is not None
        renewed = following(announced, rules, NOW, trusted=True)
        assert renewed is not None
        assert names_of(renewed.leaf.certificate) == {*NAMES, "more"}
        fewer = replace(RULES, names=NAMES[:1])
        assert following(made, fewer, NOW, trusted=True) is None

    def test_what_was_to_come_is_given_up_once_it_is_for_other_names_or_too_old(self, made):
        announced = first(RULES, NOW, made)
        for rules, now in (
            (replace(RULES, names=(*NAMES, "more")), NOW),
            (RULES, NOW + 45 * DAY),
        ):
            again = following(announced, rules, now, trusted=True)

            assert again is not None
            assert again.leaf == made.leaf
            assert again.coming not in (None, announced.coming)

    def test_an_authority_that_has_expired_is_dropped(self, made: Material):
        old = Authority.create(NOW - 100 * DAY, DAY).certificate
        kept = following(replace(made, bundle=(*made.bundle, old)), RULES, NOW, trusted=False)

        assert kept == made

    def test_what_has_expired_is_replaced_trusted_or_not(self, made: Material):
        renewed = following(made, RULES, NOW + VALIDITY, trusted=False)

        assert renewed is not None
        assert renewed.leaf.certificate.not_valid_after_utc == NOW + 2 * VALIDITY
        assert renewed.bundle == (renewed.signer,)

    def test_what_is_to_come_comes_early_where_the_other_has_expired(self, made: Material):
        announced = first(RULES, NOW + 60 * DAY, made)
        renewed = following(announced, RULES, NOW + VALIDITY, trusted=False)

        assert renewed is not None
        assert renewed.leaf == announced.coming

    def test_however_often_it_is_lost_the_bundle_is_bounded_and_has_the_signer(self, made):
        known = made
        for _ in range(MOST + 3):
            known = first(RULES, NOW, known)

        assert len(known.bundle) == MOST
        assert known.signer == made.signer

    @given(st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=12))
    def test_there_is_always_a_valid_certificate_signed_by_a_trusted_authority(self, steps):
        known, now = first(RULES, NOW), NOW
        for days, trusted in steps:
            now += days * DAY
            while wanted := following(known, RULES, now, trusted=trusted):
                known = wanted
            assert now < known.leaf.certificate.not_valid_after_utc
            signer = known.signer
            assert signer is not None
            assert known.leaf.certificate.not_valid_after_utc <= signer.not_valid_after_utc


class TestSettling:
    def test_it_is_a_twelfth_of_a_short_validity_and_two_minutes_of_a_long_one(self):
        assert Rules(NAMES, timedelta(seconds=12)).settle == timedelta(seconds=1)
        assert RULES.settle == timedelta(minutes=2)


class TestReading:
    def test_what_is_written_is_read_again(self, made: Material):
        for one in (made, first(RULES, NOW, made)):
            assert Material.read(one.wire()).wire() == one.wire()

    def test_no_key_that_signs_is_in_it(self, made: Material):
        both = first(RULES, NOW, made)

        assert set(made.wire()) == {"tls.crt", "tls.key", "ca.crt"}
        assert set(both.wire()) == {"tls.crt", "tls.key", "ca.crt", "next.crt", "next.key"}
        for key in (both.leaf.key, both.coming.key):
            assert key.public_key() not in [one.public_key() for one in both.bundle]

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"tls.crt": None}, "tls.crt is missing"),
            ({"tls.crt": ""}, "tls.crt is missing"),
            ({"tls.crt": "c2VjcmV0"}, "tls.crt holds no certificate"),
            ({"tls.key": "c2VjcmV0"}, "tls.key holds no private key"),
            ({"tls.key": "sec ret"}, "tls.key is no base64"),
            ({"ca.crt": "A" * 300_000}, "ca.crt is too long"),
            ({"next.crt": "c2VjcmV0"}, "next.key is missing"),
            ({"ca.crt": 5}, "ca.crt is missing"),
        ],
    )
    def test_a_flaw_is_told_without_its_value(self, made: Material, change, said):
        with pytest.raises(UnusableError) as error:
            Material.read(made.wire() | change)

        assert str(error.value) == said

    def test_pieces_have_to_belong_together(self, made: Material):
        other = first(RULES, NOW)
        mine, theirs = made.wire(), other.wire()
        leaf = {key: theirs[key] for key in ("tls.crt", "tls.key")}

        with pytest.raises(UnusableError, match=r"tls\.key does not belong"):
            Material.read(mine | {"tls.key": theirs["tls.key"]})
        coming = {"next.crt": theirs["tls.crt"], "next.key": theirs["tls.key"]}
        with pytest.raises(UnusableError, match=r"next\.crt is not signed by the first of ca\.crt"):
            Material.read(mine | coming)
        with pytest.raises(UnusableError, match=r"tls\.crt is signed by none"):
            Material.read(mine | leaf)

    def test_a_key_of_another_kind_is_not_taken(self, made: Material):
        from base64 import b64encode

        from cryptography.hazmat.primitives.asymmetric import ed25519
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
        )

        key = ed25519.Ed25519PrivateKey.generate()
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

        with pytest.raises(UnusableError, match=r"tls\.key is no ECDSA key"):
            Material.read(made.wire() | {"tls.key": b64encode(pem).decode()})

    def test_no_key_is_in_a_repr(self, made: Material):
        assert "EllipticCurve" not in repr(made)
