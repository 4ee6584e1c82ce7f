"""All traffic of a browser passes a proxy that resolves names, checks addresses and connects to the checked ones."""

import asyncio
import contextlib
import socket

import httpx
import pytest

from tests.sites.server import FixtureServer, Page
from waygraph.core.errors import InvalidInput
from waygraph.core.settings import BrowserSettings
from waygraph.pipeline.browser.egress import EgressCallbacks, EgressLimits, EgressProxy, HostRules, UpstreamProxy
from waygraph.pipeline.browser.guard import RequestPolicy
from waygraph.pipeline.browser.process.launch import launch


def key(site):
    return site.url.removeprefix("http://").rstrip("/")


def names(**addresses):
    """Return a resolver of these names; entries of a list are used one after the other, the last one repeatedly."""
    left = {name.replace("_", "."): list(found) for name, found in addresses.items()}

    async def resolve(host, port):
        if host not in left:
            raise OSError("unknown")
        return [left[host].pop(0) if len(left[host]) > 1 else left[host][0]]

    return resolve


@contextlib.asynccontextmanager
async def client(**options):
    async with EgressProxy(**options) as proxy, httpx.AsyncClient(proxy=proxy.url, timeout=10) as http:
        yield proxy, http


async def is_refused(http, url):
    try:
        await http.get(url)
    except (httpx.RemoteProtocolError, httpx.ProxyError):
        return True
    return False


async def hangs_up(proxy, sent):
    """Return whether the proxy closes the connection after these bytes."""
    host, port = proxy.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True  # before everything was sent
    finally:
        writer.close()


async def test_a_named_host_on_loopback_is_reached_and_its_bytes_are_counted():
    with FixtureServer({"/": "x" * 300_000, "/b": "b"}) as site:
        async with client(allowed=frozenset({key(site)})) as (proxy, http):
            assert len((await http.get(site.url)).text) == 300_000
            assert (await http.post(site.at("/b"), content=b"y" * 100_000)).text == "b"
            assert proxy.bytes_received[key(site)] > 300_000
        assert site.requests == [("GET", "/"), ("POST", "/b")]


async def test_unnamed_hosts_are_refused_at_every_address_that_is_not_public():
    refused = []
    with FixtureServer({}) as site, FixtureServer({}) as other:
        port = key(other).rpartition(":")[2]
        urls = [
            other.url,
            f"http://localhost:{port}/",
            f"http://[::1]:{port}/",
            f"http://[::ffff:127.0.0.1]:{port}/",
            f"http://0.0.0.0:{port}/",
            "http://169.254.169.254/latest/meta-data/",
            "https://169.254.169.254/",
            "http://10.0.0.1/",
            "http://[fd00::1]/",
            f"http://inside.test:{port}/",
        ]
        async with client(
            allowed=frozenset({key(site)}),
            resolver=names(inside_test=["127.0.0.1"], localhost=["127.0.0.1"]),
            callbacks=EgressCallbacks(on_refused=lambda url, _: refused.append(url)),
        ) as (proxy, http):
            assert [url for url in urls if "[" not in url and not await is_refused(http, url)] == []
            for url in (url for url in urls if "[" in url):  # httpx writes these wrongly
                assert await hangs_up(proxy, f"GET {url} HTTP/1.1\r\n\r\n".encode())
            assert "loopback" in str(proxy.problem(other.url))
        assert len(refused) == len(urls)
        assert other.requests == []


async def test_name_that_later_resolves_to_a_private_address_is_refused():
    tried = []

    class Offline(EgressProxy):
        """Records the target of a connection instead of connecting: the address is public."""

        async def _connect_to(self, found, _factory):
            tried.append(found.addresses)
            raise ConnectionRefusedError

    with FixtureServer({"/": "secret"}) as inside:
        port = key(inside).rpartition(":")[2]
        resolver = names(rebinding_test=["9.9.9.9", "127.0.0.1"], named_test=["9.9.9.9", "127.0.0.1"])
        async with (
            Offline(
                allowed=frozenset({f"named.test:{port}"}), resolver=resolver, limits=EgressLimits(dns_cache_s=0)
            ) as proxy,
            httpx.AsyncClient(proxy=proxy.url) as http,
        ):
            for name in ("rebinding.test", "named.test"):
                url = f"http://{name}:{port}/"
                assert await is_refused(http, url)
                assert str(proxy.problem(url)) == "it refuses the connection"
                assert await is_refused(http, url)
                assert "127.0.0.1" in str(proxy.problem(url))
        assert tried == [("9.9.9.9",), ("9.9.9.9",)]
        assert inside.requests == []


async def test_redirects_and_subresources_reach_named_hosts_only():
    refused = []
    with FixtureServer({"/": "secret", "/x.png": b"x"}) as other, FixtureServer({}) as site:
        site.pages["/"] = f"<img src='{other.at('/x.png')}'><img src='http://169.254.169.254/x'><h1>Here</h1>"
        site.pages["/away"] = Page(redirect=other.url)
        async with (
            EgressProxy(
                allowed=frozenset({key(site)}), callbacks=EgressCallbacks(on_refused=lambda url, _: refused.append(url))
            ) as proxy,
            launch(BrowserSettings(), guarded=True, proxy=proxy.url) as browser,
        ):
            page = await browser.new_page()
            await page.goto(site.url)
            assert await page.inner_text("h1") == "Here"
            with pytest.raises(Exception, match="ERR_EMPTY_RESPONSE"):
                await page.goto(site.at("/away"))
        assert other.requests == []
        assert {other.at("/x.png"), "http://169.254.169.254/x", other.url} <= set(refused)


async def test_state_changing_request_that_reaches_the_proxy_is_stopped():
    blocked = []
    with FixtureServer({"/": "x", "/graphql": "{}"}) as site:
        async with client(
            allowed=frozenset({key(site)}),
            request_policy=RequestPolicy(),
            callbacks=EgressCallbacks(on_blocked=blocked.append),
        ) as (_, http):
            await http.get(site.url)
            with pytest.raises(httpx.RemoteProtocolError):
                await http.post(site.url, content=b"x")
            assert (await http.post(site.at("/graphql"), json={"query": "{ all { id } }"})).status_code == 200
        assert site.requests == [("GET", "/"), ("POST", "/graphql")]
        assert [(b.method, b.url, b.kind) for b in blocked] == [("POST", site.url, "egress")]


async def test_host_that_accepts_and_never_answers_times_out():
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    with contextlib.closing(listener):
        async with client(allowed=frozenset({f"127.0.0.1:{port}"}), limits=EgressLimits(response_timeout_s=0.2)) as (
            proxy,
            http,
        ):
            with pytest.raises(httpx.RemoteProtocolError):
                await http.get(f"http://127.0.0.1:{port}/")
            assert str(proxy.problem(f"http://127.0.0.1:{port}/")) == "it does not answer"


async def test_failures_name_their_reason():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with client(allowed=frozenset({f"127.0.0.1:{port}"}), resolver=names()) as (proxy, http):
        assert await is_refused(http, f"http://127.0.0.1:{port}/")
        assert await is_refused(http, "http://nowhere.test/")
        assert await is_refused(http, "https://nowhere.test/")
        assert str(proxy.problem(f"http://127.0.0.1:{port}/")) == "it refuses the connection"
        assert "DNS" in str(proxy.problem("http://nowhere.test/"))
        assert "DNS" in str(proxy.problem("https://nowhere.test/"))


async def test_garbage_oversized_heads_and_requests_to_the_proxy_itself_close_the_connection():
    async with EgressProxy() as proxy:
        for sent in (b"\x00\x01\x02" * 50, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"GET http://x/" + b"a" * 400_000):
            assert await hangs_up(proxy, sent)


async def test_chunked_upload_arrives_complete_and_a_slow_reader_receives_everything():
    large = "z" * 8_000_000
    with FixtureServer({"/large": large, "/up": lambda request: str(len(request.body))}) as site:
        async with client(allowed=frozenset({key(site)})) as (_, http):

            async def chunks():
                for _ in range(10):
                    yield b"c" * 1_000

            assert (await http.post(site.at("/up"), content=chunks())).text == "10000"
            got = 0
            async with http.stream("GET", site.at("/large")) as answer:
                async for piece in answer.aiter_bytes(100_000):
                    got += len(piece)
                    await asyncio.sleep(0)
            assert got == len(large)


async def test_host_resolver_rules_of_the_browser_are_applied():
    with FixtureServer({"/": "mapped"}) as site:
        rules = HostRules.parse(
            [f"--host-resolver-rules=MAP *.shop.test {key(site)}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        )
        async with client(host_rules=rules) as (proxy, http):
            assert (await http.get("http://www.shop.test/")).text == "mapped"
            assert await is_refused(http, "http://other.test/")
            assert "DNS" in str(proxy.problem("http://other.test/"))


async def test_user_proxy_receives_the_requests_with_its_password():
    heads = []

    async def upstream(reader, writer):
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(upstream, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        chained = UpstreamProxy.parse(f"http://me:s%40cret@127.0.0.1:{port}")
        async with client(upstream=chained, resolver=names()) as (_, http):
            assert (await http.get("http://only.there/page?x=1")).text == "yes"
    assert heads[0].startswith(b"GET http://only.there/page?x=1 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6c0BjcmV0\r\n" in heads[0]
    assert "s@cret" not in repr(chained)


async def test_socks5_proxy_of_the_user_is_used():
    with FixtureServer({"/": "through socks"}) as site:

        async def handle(reader, writer):
            greeting = await reader.readexactly(2)
            await reader.readexactly(greeting[1])
            writer.write(b"\x05\x00")
            await reader.readexactly(4)
            name = await reader.readexactly((await reader.readexactly(1))[0])
            await reader.readexactly(2)
            assert name == b"only.there"
            host, port = key(site).split(":")
            inner_reader, inner_writer = await asyncio.open_connection(host, int(port))
            writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
            head = await reader.readuntil(b"\r\n\r\n")
            inner_writer.write(head)
            writer.write(await inner_reader.readuntil(b"through socks"))
            await writer.drain()
            inner_writer.close()
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            async with client(upstream=UpstreamProxy.parse(f"socks5://127.0.0.1:{port}"), resolver=names()) as (
                _,
                http,
            ):
                assert (await http.get("http://only.there/")).text == "through socks"


@pytest.mark.parametrize("text", ["ftp://x:1", "https://proxy:3128", "http://", "http://x:99999", "socks4://x:1"])
def test_unsupported_proxy_addresses_are_refused_with_a_message(text):
    with pytest.raises(InvalidInput):
        UpstreamProxy.parse(text)
