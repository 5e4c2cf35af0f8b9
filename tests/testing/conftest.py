from support.commands.fixtures import garden, server, signalled, typed, typing

__all__ = ["garden", "server", "signalled", "typed", "typing"]
