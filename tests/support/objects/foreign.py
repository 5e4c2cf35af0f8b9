"""Foreign: what others may write into names, messages and values to steer a terminal."""

from __future__ import annotations

UNMEANT = (
    *map(chr, range(0x20)),
    *map(chr, range(0x7F, 0xA0)),
    *"\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff",
)
"""Each character that a terminal obeys, ends a line, or turns the direction of reading."""
FORGED = "FORGED"
"""What begins a line if an end of line got through."""
COPY = "\x1b]52;c;aGVkZ2Vyb3c=\x07"
"""OSC 52: what the clipboard is to hold."""
POISON = f"{COPY}\x1b[8m\r{FORGED}\n{FORGED}{''.join(UNMEANT)}\r\n{FORGED}"
