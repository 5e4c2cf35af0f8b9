"""Rotation: what comes after which certificate, and when."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.serving.issuing import Authority, names_of
from hedgerow.serving.material import MOST, Material, UnusableError
from hedgerow.serving.rotation import Rules, due, first, following
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
        assert made.bundle == (made.authority.certificate,)
        assert made.signer == made.authority.certificate
        assert names_of(made.leaf.certificate) == set(NAMES)
        assert made.leaf.certificate.not_valid_after_utc == NOW + VALIDITY
        assert made.authority.certificate.not_valid_after_utc == NOW + 4 * VALIDITY

    def test_what_is_known_is_served_and_trusted_on(self, made: Material):
        again = first(RULES, NOW + DAY, made)

        assert again.leaf == made.leaf
        assert again.authority != made.authority
        assert again.older == made.bundle
        assert again.signer == made.authority.certificate

    def test_what_is_known_but_expired_is_not(self, made: Material):
        again = first(RULES, NOW + VALIDITY, made)

        assert again.leaf != made.leaf
        assert again.older == ()


class TestFollowing:
    @pytest.mark.parametrize("day", [0, 30, 59])
    def test_nothing_follows_while_all_is_well(self, made: Material, day: int):
        assert following(made, RULES, NOW + day * DAY, trusted=True) is None

    def test_the_certificate_is_renewed_at_two_thirds_by_the_same_authority(self, made: Material):
        renewed = following(made, RULES, NOW + 60 * DAY, trusted=True)

        assert renewed is not None
        assert renewed.leaf != made.leaf
        assert renewed.authority == made.authority
        assert renewed.leaf.certificate.not_valid_after_utc == NOW + 60 * DAY + VALIDITY

    def test_replicas_renew_at_different_times(self, made: Material):
        times = {due(made, replace(RULES, draw=draw)) for draw in (0, 0.5, 0.99)}

        assert len(times) == 3
        assert max(times) - min(times) < VALIDITY / 12

    def test_it_is_renewed_for_other_names(self, made: Material):
        rules = replace(RULES, names=(*NAMES, "more"))
        renewed = following(made, rules, NOW, trusted=True)

        assert renewed is not None
        assert names_of(renewed.leaf.certificate) == {*NAMES, "more"}
        fewer = replace(RULES, names=NAMES[:1])
        assert following(made, fewer, NOW, trusted=True) is None

    def test_another_authority_is_trusted_before_it_signs(self, made: Material):
        halfway = NOW + 2 * VALIDITY
        leaf = made.authority.issue(NAMES, halfway, VALIDITY)
        current = replace(made, leaf=leaf)

        announced = following(current, RULES, halfway, trusted=True)

        assert announced is not None
        assert announced.leaf == leaf
        assert announced.bundle == (announced.authority.certificate, made.authority.certificate)
        assert following(announced, RULES, halfway, trusted=False) is None
        signs = following(announced, RULES, halfway, trusted=True)
        assert signs is not None
        assert signs.signer == announced.authority.certificate
        assert signs.bundle == announced.bundle

    def test_an_authority_that_has_expired_is_dropped(self, made: Material):
        halfway = NOW + 2 * VALIDITY
        both = first(RULES, halfway, replace(made, leaf=made.authority.issue(NAMES, halfway, DAY)))
        both = replace(both, leaf=both.authority.issue(NAMES, halfway, 4 * VALIDITY))
        end = made.authority.certificate.not_valid_after_utc

        assert following(both, RULES, end - DAY, trusted=False) is None
        # The newer one is at its own half by then.
        dropped = following(both, RULES, end, trusted=False)
        assert dropped is not None
        assert made.authority.certificate not in dropped.bundle

    def test_dropping_alone_is_a_change_too(self, made: Material):
        old = Authority.create(NOW - 100 * DAY, DAY).certificate
        kept = following(replace(made, older=(old,)), RULES, NOW, trusted=False)

        assert kept == made

    def test_what_has_expired_is_replaced_trusted_or_not(self, made: Material):
        renewed = following(made, RULES, NOW + VALIDITY, trusted=False)

        assert renewed is not None
        assert renewed.leaf.certificate.not_valid_after_utc == NOW + 2 * VALIDITY

    def test_a_longer_validity_asks_for_another_authority(self, made: Material):
        rules = Rules(NAMES, 10 * VALIDITY)
        announced = following(made, rules, NOW, trusted=True)

        assert announced is not None
        assert announced.authority != made.authority

    def test_however_often_it_is_lost_the_bundle_is_bounded_and_has_the_signer(self, made):
        known = made
        for _ in range(MOST + 3):
            known = first(RULES, NOW, known)

        assert len(known.bundle) == MOST
        assert known.signer == made.authority.certificate

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
        both = first(RULES, NOW, made)
        assert Material.read(both.wire()).wire() == both.wire()

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"tls.crt": None}, "tls.crt is missing"),
            ({"tls.crt": ""}, "tls.crt is missing"),
            ({"tls.crt": "c2VjcmV0"}, "tls.crt holds no certificate"),
            ({"tls.key": "c2VjcmV0"}, "tls.key holds no private key"),
            ({"tls.key": "sec ret"}, "tls.key is no base64"),
            ({"ca.key": "A" * 300_000}, "ca.key is too long"),
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
        with pytest.raises(UnusableError, match=r"ca\.key does not belong"):
            Material.read(mine | {"ca.key": theirs["ca.key"]})
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
