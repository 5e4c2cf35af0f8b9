"""Callers: what a client of a Service is answered."""

import http.client

_PATIENCE = 30.0


def ask(address: str, port: int) -> str:
    """Ask once, and give the answer's body, or what went wrong."""
    connection = http.client.HTTPConnection(address, port, timeout=_PATIENCE)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        body = answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}: {error}"
    else:
        return body if answer.status == 200 else f"HTTP {answer.status}"
    finally:
        connection.close()
