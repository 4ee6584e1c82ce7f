"""Site keys name one folder of the store only, and different hosts have different keys."""

from pathlib import PurePosixPath

from hypothesis import example, given
from hypothesis import strategies as st

from waygraph.core.errors import InvalidInput
from waygraph.core.urls import normalize_url, parse_start_url, site_key
from waygraph.index.store import validate_site_key
from waygraph.index.store.layout import claim_path, head_path, version_folder

labels = st.text(st.sampled_from("abcxyz019-_é"), min_size=1, max_size=8)
hosts = st.one_of(st.lists(labels, min_size=1, max_size=4).map(".".join), st.sampled_from(["[::1]", "127.0.0.1"]))
ports = st.one_of(st.none(), st.integers(1, 65535))
paths = st.text(st.sampled_from("ab/.%2eF5\\?#&=;:@[]é \t"), max_size=20)
hostile = st.one_of(
    st.text(max_size=40),
    st.text(st.sampled_from("ab./\\%2e:[]~$\0\n \u202e-_AÉ1"), max_size=20),
    st.builds("{}{}{}".format, hosts, st.sampled_from(["/..", "\\..", "%2f..", "\0", "/", "\n", ":1/.."]), hosts),
)


def address(host, port, path=""):
    return f"http://{host}{'' if port is None else f':{port}'}/{path}"


@given(hostile)
@example("..")
@example(".")
@example("")
@example("a/../../b")
@example("con:1\n")
def test_any_text_is_refused_as_a_site_key_or_stays_in_its_own_folder(text):
    try:
        key = validate_site_key(text)
    except InvalidInput:
        return
    assert key == text
    for place in (head_path(key), claim_path(key, 1), version_folder(key, 1)):
        parts = PurePosixPath(place).parts
        assert parts[:2] == ("sites", key)
        assert not {"..", "."} & set(parts)
        assert not place.startswith("/")
        assert not set(place) & set("\\\0\n%~$")


@given(hosts, ports, paths)
def test_every_accepted_url_has_a_valid_site_key(host, port, path):
    try:
        url = parse_start_url(address(host, port, path))
    except InvalidInput:
        return
    key = site_key(url)
    try:
        validate_site_key(key)
    except InvalidInput:
        # Hosts that no DNS has: an empty label, a hyphen or a dot at an end.
        assert any(not label or label[0] == "-" or label[-1] == "-" for label in host.split("."))
        return
    assert site_key(normalize_url(url)) == key


@given(st.tuples(hosts, ports), st.tuples(hosts, ports), paths, paths)
@example(("a.example", 80), ("a.example", 8080), "", "")
@example(("a.example", None), ("a.example.b", None), "", "")
@example(("a_b", None), ("a-b", None), "", "")
def test_different_hosts_never_share_a_key(first, second, path, other):
    def identity(host, port):
        try:
            return host.encode("idna").decode().lower(), port or 80
        except UnicodeError:
            return host.lower(), port or 80

    keys = [site_key(address(*each, where)) for each, where in ((first, path), (second, other))]
    assert (keys[0] == keys[1]) == (identity(*first) == identity(*second))
    # Folders of both exist beside each other where upper and lower case are one.
    assert (keys[0].casefold() == keys[1].casefold()) == (keys[0] == keys[1])
