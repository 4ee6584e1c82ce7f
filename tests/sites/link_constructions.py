"""Every construction of HTML that names the address of a page, with what a snapshot holds of it beside candidates."""

#: By construction: the markup, and address and name of the links that no person sees. PAGE: the page itself. Links to
#: `/seen` are seen.
CONSTRUCTIONS = {
    "no text": ("<a href=/x></a>", [("/x", "")]),
    "hidden attribute": ("<a href=/x hidden>Reports</a>", [("/x", "Reports")]),
    "display none": ("<a href=/x style='display:none'>Reports</a>", [("/x", "Reports")]),
    "visibility hidden": ("<a href=/x style='visibility:hidden'>Reports</a>", [("/x", "Reports")]),
    "transparent": ("<a href=/x style='opacity:0'>Reports</a>", [("/x", "Reports")]),
    "beside the page": ("<a href=/x style='position:absolute;left:-9999px'>Reports</a>", [("/x", "Reports")]),
    "no size": ("<a href=/x style='font-size:0'>Reports</a>", [("/x", "Reports")]),
    "inert": ("<p inert><a href=/x>Reports</a></p>", [("/x", "Reports")]),
    "closed menu": (
        "<ul style='display:none'><li><a href=/x>One</a><li><a href=/y title=2></a></ul>",
        [("/x", "One"), ("/y", "2")],
    ),
    "closed details": ("<details><summary>More</summary><a href=/x>Reports</a></details>", [("/x", "Reports")]),
    "closed dialog": ("<dialog><a href=/x aria-label=Reports>R</a></dialog>", [("/x", "Reports")]),
    "image in a hidden link": ("<a href=/x hidden><img alt=Reports></a>", [("/x", "Reports")]),
    "svg link": (
        "<svg><a xlink:href=/seen><text y=20>S</text></a><a xlink:href=/x display=none><text>R</text></a></svg>",
        [("/x", "R")],
    ),
    "area of a shown image": (
        "<img src=/i.png usemap='#m' width=9 height=9><map name=m><area href=/seen coords=0,0,9,9></map>",
        [],
    ),
    "area of no image": ("<map name=m><area href=/x alt=Reports></map>", [("/x", "Reports")]),
    "link to a page": (
        "<link rel='nofollow next' href=/x title=Reports><link rel=help href=/y>",
        [("/x", "Reports"), ("/y", "")],
    ),
    "link to a resource": (
        (
            "<link rel=stylesheet href=/x><link rel=icon href=/x><link rel=preload as=fetch href=/x>"
            "<link rel='alternate stylesheet' href=/x title=Dark><link rel=canonical href=/x><link rel=EditURI href=/x>"
        ),
        [],
    ),
    "link to a feed or a search description": (
        (
            "<link rel=alternate type=application/rss+xml href=/x>"
            "<link rel=search type=application/opensearchdescription+xml href=/x>"
        ),
        [],
    ),
    "link to another language": ("<link rel=alternate hreflang=de href=/de/>", [("/de/", "")]),
    "form without fields": ("<form action=/x><button>All reports</button></form>", [("/x", "All reports")]),
    "form with fields": (
        (
            "<form action='/x?old=1#top'><input type=hidden name=do value='a b'><input type=hidden name=none>"
            "<input name=q placeholder=Find value=w><select name=s><option>1</select></form>"
        ),
        [("/x?do=a+b", "Find")],
    ),
    "form with clobbered properties": (
        "<form action=/x><input name=action><input name=method><button>Go</form>",
        [("/x", "Go")],
    ),
    "post form": ("<form action=/x method=post><button>Go</button></form>", []),
    "form of its own page": ("<form><input type=hidden name=t value=1><button>Go</button></form>", []),
    "address of a button": (
        "<form method=post action=/y><button formmethod=get formaction=/x>Preview</button><button formaction=/z>S</button></form>",
        [("/x", "Preview")],
    ),
    "ping": ("<a href=/seen ping=/x>S</a>", []),
    "no page": (
        (
            "<p hidden><a href='javascript:go()'>J</a><a href='mailto:a@x.example'>M</a><a href='data:text/html,x'>D</a>"
            "<a href='tel:1'>T</a><a href='http://['>B</a><a>N</a></p>"
        ),
        [],
    ),
    "download": ("<a href=/x.csv download hidden>CSV</a>", []),
    "target and rel": ("<a href=/x target=_blank rel='nofollow noopener' hidden>Reports</a>", [("/x", "Reports")]),
    "part of the page": ("<a href='#x' hidden>P</a>", []),
    "part of another page": ("<p hidden><a href='/x#a'>A</a><a href='/x#b'>B</a></p>", [("/x", "A")]),
    "route of a script": ("<a href='#/x' hidden>Reports</a>", [("PAGE#/x", "Reports")]),
    "template": ("<template><a href=/x>Reports</a></template>", []),
    "noscript": ("<noscript><a href=/x>Reports</a></noscript>", []),
    "noscript in a frame without scripts": (
        "<iframe sandbox=allow-same-origin srcdoc='<noscript><a href=/x>R</a></noscript>'></iframe>",
        [],
    ),
    "comment": ("<!-- <a href=/x>Reports</a> -->", []),
    "base": ("<base href=/deep/><a href=x hidden>Reports</a>", [("/deep/x", "Reports")]),
    "hidden and shown": ("<a href=/seen hidden>Reports</a><a href=/seen>S</a>", []),
    "twice": ("<p hidden><a href=/x>One</a><a href=/x>Two</a></p>", [("/x", "One")]),
    "shadow root": (
        "<x-a><template shadowrootmode=open><a href=/seen>S</a><a href=/x hidden>R</a></template><a href=/y>Unslotted</a></x-a>",
        [("/y", "Unslotted"), ("/x", "R")],
    ),
    "shadow root in a hidden element": (
        "<div hidden><x-a><template shadowrootmode=open><a href=/x>R</a></template></x-a></div>",
        [("/x", "R")],
    ),
    "frame": ("<iframe srcdoc='<a href=/seen>S</a><a href=/x hidden>R</a>'></iframe>", [("/x", "R")]),
    "hidden frame": ("<iframe src=/inner hidden></iframe>", [("/x", "Inside")]),
}

#: What the frame of a construction shows.
INNER = "<title>i</title><a href=/x>Inside</a>"
