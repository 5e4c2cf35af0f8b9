"""Fields that change hands, as typed: adopt and release."""
