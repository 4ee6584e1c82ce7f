"""Address of the service: refused without a key beyond loopback; errors are reported before anything starts."""

from __future__ import annotations

import socket

import pytest

from waygraph.core.errors import ServiceError
from waygraph.core.settings import ServeSettings
from waygraph.serve.runtime.address import local_url, reserve


def test_port_zero_selects_a_free_port() -> None:
    with reserve(ServeSettings(port=0)) as held:
        assert held.getsockname()[1] > 0
        assert local_url(held) == f"http://127.0.0.1:{held.getsockname()[1]}"


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104 - the point of the test
def test_without_a_key_it_refuses_to_bind_beyond_loopback(host: str) -> None:
    with pytest.raises(ServiceError, match="without an API key") as refused:
        reserve(ServeSettings(host=host, port=0))
    assert "WAYGRAPH_SERVE__KEYS_FILE" in refused.value.hint


def test_with_a_key_it_binds_beyond_loopback() -> None:
    with reserve(ServeSettings(host="0.0.0.0", port=0, api_keys=("a-key-of-these-tests",))) as held:  # noqa: S104
        assert local_url(held).startswith("http://127.0.0.1:")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2"])
def test_loopback_needs_no_key(host: str) -> None:
    reserve(ServeSettings(host=host, port=0)).close()


def test_a_port_with_a_listener_is_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(ServiceError, match="is in use") as refused:
        reserve(ServeSettings(port=other.getsockname()[1]))
    assert "--port" in refused.value.hint


def test_a_port_of_another_waygraph_service_is_in_use() -> None:
    with reserve(ServeSettings(port=0)) as held:
        port = held.getsockname()[1]
        with proxy_on(port), pytest.raises(ServiceError, match="is in use"):
            reserve(ServeSettings(port=port))


def test_the_proxy_can_bind_beside_the_reservation() -> None:
    with reserve(ServeSettings(port=0)) as held:
        port = held.getsockname()[1]
        with proxy_on(port) as proxy, socket.create_connection(("127.0.0.1", port), timeout=60):
            proxy.accept()[0].close()


def test_a_restart_finds_its_port_free_although_old_connections_linger() -> None:
    with reserve(ServeSettings(port=0)) as held:
        port = held.getsockname()[1]
        with proxy_on(port) as proxy, socket.create_connection(("127.0.0.1", port), timeout=60) as caller:
            answering = proxy.accept()[0]
            answering.close()  # the side that closes first keeps the connection in TIME_WAIT
            assert caller.recv(1) == b""
    reserve(ServeSettings(port=port)).close()


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
def test_an_address_of_another_machine_is_one_clear_error(host: str) -> None:
    with pytest.raises(ServiceError) as refused:
        reserve(ServeSettings(host=host, port=0, api_keys=("a-key-of-these-tests",)))
    assert refused.value.hint


def proxy_on(port: int) -> socket.socket:
    """Listen as the proxy of Ray Serve does."""
    proxy = socket.socket()
    proxy.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    proxy.bind(("127.0.0.1", port))
    proxy.listen()
    return proxy
