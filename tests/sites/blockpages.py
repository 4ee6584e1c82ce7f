"""Block pages of bot protection, and pages that resemble them: `PAGES` for a `FixtureServer`, `BLOCKED` as the answer.

Written after what protection services are known to send, without their scripts: `BLOCKED` names whom
`waygraph.pipeline.explore.policies.block_page.detect_block_page` should find behind each path; what is in `PAGES` and not there is content.
"""

from __future__ import annotations

from tests.sites.server import Page

_LINKS = "".join(
    f"<li><a href='/{name}'>{name.title()}</a></li>" for name in ("news", "shop", "prices", "jobs", "help", "about")
)
_NAV = f"<nav><ul>{_LINKS}</ul></nav>"
_ARTICLE = "<p>" + "They asked whether anybody likes to tick pictures of traffic lights, and nobody did. " * 12 + "</p>"


def _page(title: str, body: str, *, status: int = 200, **headers: str) -> Page:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    html = f"<!doctype html><html><head><title>{title}</title></head><body>{body}</body></html>"
    return Page(html, status=status, headers=named)


_REFUSED = {
    "/cloudflare/challenge": (
        "cloudflare",
        _page(
            "Just a moment...",
            "<h1>shop.example</h1><p>Verifying you are human. This may take a few seconds.</p>"
            "<script>window._cf_chl_opt = {cType: 'managed', cRay: '8c1d'};</script>",
            status=403,
        ),
    ),
    "/cloudflare/header": (
        "cloudflare",
        _page("Un instant...", _NAV + _ARTICLE, status=403, CF_Mitigated="challenge"),
    ),
    "/cloudflare/1020": (
        "cloudflare",
        _page(
            "Access denied | shop.example used Cloudflare to restrict access",
            '<div id="cf-wrapper"><div id="cf-error-details" class="p-0"><h1>Access denied</h1>'
            "<p>Error code 1020. You do not have access to shop.example.</p></div></div>",
            status=403,
        ),
    ),
    "/datadome": (
        "datadome",
        _page(
            "shop.example",
            '<iframe src="https://geo.captcha-delivery.com/captcha/?initialCid=A&amp;cid=B" title="DataDome CAPTCHA">'
            "</iframe>",
            status=403,
        ),
    ),
    "/perimeterx": (
        "perimeterx",
        _page(
            "Access to this page has been denied",
            '<h1>Press &amp; Hold to confirm you are a human (and not a bot).</h1><div id="px-captcha"></div>',
            status=403,
        ),
    ),
    "/akamai/denied": (
        "access-denied",
        _page(
            "Access Denied",
            '<h1>Access Denied</h1>You don\'t have permission to access "http://shop.example/" on this server.'
            "<p>Reference #18.2d351ab8.1557333295.a4e16ab</p>",
            status=403,
        ),
    ),
    "/akamai/challenge": (
        "akamai",
        _page(
            "Challenge Validation", '<div id="sec-if-cpt-container"><p>Validating your request.</p></div>', status=429
        ),
    ),
    "/imperva": (
        "imperva",
        _page(
            "",
            '<iframe src="/_Incapsula_Resource?CWUDNSAI=9&amp;xinfo=1&amp;SWUDNSAI=31&amp;edet=12" height="100%">'
            "Request unsuccessful. Incapsula incident ID: 0-12</iframe>",
        ),
    ),
    "/aws/captcha": ("aws-waf", _page("Human Verification", "<p>Wait.</p>", status=405, X_Amzn_Waf_Action="captcha")),
    "/aws/challenge": ("aws-waf", _page("", '<script>window.gokuProps = {"key": "A"};</script>', status=202)),
    "/anubis": (
        "anubis",
        _page(
            "Making sure you're not a bot!",
            '<script id="anubis_challenge" type="application/json">{}</script><p>Loading...</p>',
        ),
    ),
    "/recaptcha/wall": (
        "recaptcha",
        _page(
            "One more step",
            '<form method="post"><div class="g-recaptcha" data-sitekey="k"></div><input type="submit" value="Continue">'
            '<textarea name="g-recaptcha-response" style="display:none"></textarea></form>',
        ),
    ),
    "/hcaptcha/wall": (
        "hcaptcha",
        _page("Attention", '<p>Please continue.</p><div class="box h-captcha" data-sitekey="k"></div>', status=403),
    ),
    "/turnstile/wall": (
        "turnstile",
        _page(
            "One step left",
            '<div class="cf-turnstile" data-sitekey="k"></div><input type="hidden" name="cf-turnstile-response">',
        ),
    ),
    "/rate-limit": ("rate-limit", _page("Slow down", f"{_NAV}<p>Too many requests.</p>", status=429)),
    "/words/search": (
        "challenge",
        _page("Sorry", "<p>Our systems have detected unusual traffic from your computer network.</p>"),
    ),
    "/words/german": ("challenge", _page("Prüfung", "<p>Bitte bestätigen Sie, dass Sie kein Roboter sind.</p>")),
    "/words/denied": (
        "access-denied",
        _page(
            "Forbidden",
            "<p>Your request looks automated and your IP address has been blocked. Access denied.</p>",
            status=403,
        ),
    ),
    "/words/checking": (
        "challenge",
        _page("Please wait", "<p>Checking your browser before accessing shop.example.</p>", status=503),
    ),
}

_CONTENT = {
    "/login": _page(
        "Log in",
        '<form method="post"><input type="text" name="user"><input type="password" name="word">'
        '<button>Log in</button><div class="g-recaptcha" data-sitekey="k"></div></form>',
    ),
    "/login/badge": _page(
        "Log in",
        '<form method="post"><input name="user"><input type="password" name="word"><button>Log in</button></form>'
        '<div class="grecaptcha-badge"><iframe title="reCAPTCHA" '
        'src="https://www.google.com/recaptcha/api2/anchor?ar=1&amp;k=K&amp;size=invisible"></iframe></div>',
    ),
    "/thanks": _page(
        "Thank you",
        '<p>Your order is on its way.</p><div class="grecaptcha-badge"><iframe title="reCAPTCHA" '
        'src="https://www.google.com/recaptcha/api2/anchor?ar=1&amp;k=K&amp;size=invisible"></iframe></div>',
    ),
    "/contact": _page(
        "Contact",
        '<form method="post"><textarea name="message"></textarea><div class="h-captcha" data-sitekey="k"></div>'
        "<button>Send</button></form>",
    ),
    "/protected": _page(
        "Chairs",
        "<h1>Chairs</h1><p>Oak and beech.</p><script src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'></script>"
        "<script>window._pxAppId = 'PX1';</script><script src='https://js.datadome.co/tags.js'></script>"
        "<script src='/_Incapsula_Resource?SWJIYLWA=719d'></script>",
    ),
    "/article": _page(
        "Are you a robot? Why CAPTCHAs annoy people",
        f"{_NAV}<h1>Are you a robot?</h1><p>Please verify you are human, says every second page. Checking your browser,"
        f" says the rest. Access denied, say the others, due to unusual traffic.</p>{_ARTICLE}",
    ),
    "/article/code": _page(
        "How challenges work",
        f'{_NAV}<pre>window._cf_chl_opt = 1; id="px-captcha"; geo.captcha-delivery.com</pre>{_ARTICLE}',
    ),
    "/article/short": _page("CAPTCHA", f"{_NAV}<p>A CAPTCHA asks whether you are a robot.</p>"),
    "/blog/security": _page("Security", "<p>Access to the vault is restricted to staff.</p><a href='/'>Home</a>"),
    "/admin": _page("403 Forbidden", "<h1>Access denied</h1><p>You lack the role 'administrator'.</p>", status=403),
    "/maintenance": _page("Maintenance", "<p>We are back at noon.</p>", status=503),
    "/broken": _page("Error 522", '<div id="cf-error-details"><h1>Connection timed out</h1></div>', status=522),
    "/empty": _page("", ""),
}

PAGES: dict[str, Page] = {**{path: page for path, (_, page) in _REFUSED.items()}, **_CONTENT}
BLOCKED: dict[str, str] = {path: name for path, (name, _) in _REFUSED.items()}
