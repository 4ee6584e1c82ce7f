"""Product drawings in inline SVG, so that the site needs no image files and no other host."""

from __future__ import annotations

from waygraph.demo_site.markup import Html, html

_DRAWINGS = {
    "ember-table-lamp": """
<ellipse cx="200" cy="318" rx="92" ry="12" fill="#00000018"/><circle cx="200" cy="165" r="150" fill="url(#glow)"/>
<path d="M150 96h100l38 112H112z" fill="#f3dfbd"/><path d="M250 96l38 112h-50L222 96z" fill="#e3c593"/>
<path d="M112 208h176" stroke="#caa66c" stroke-width="4"/><rect x="195" y="208" width="10" height="44" fill="#8d6b45"/>
<path d="M200 246c34 0 46 22 46 42 0 16-20 26-46 26s-46-10-46-26c0-20 12-42 46-42z" fill="#a8794a"/>
<path d="M214 249c22 6 32 22 32 39 0 15-17 24-40 26 16-18 20-44 8-65z" fill="#8a5f37"/>""",
    "halo-pendant": """
<path d="M200 0v128" stroke="#4a4034" stroke-width="3"/><circle cx="200" cy="236" r="140" fill="url(#glow)"/>
<ellipse cx="200" cy="214" rx="124" ry="44" fill="none" stroke="#b98b3e" stroke-width="20"/>
<path d="M76 214c0-24 55-44 124-44s124 20 124 44" fill="none" stroke="#dcb468" stroke-width="14"/>
<path d="M118 190L200 128l82 62" fill="none" stroke="#4a4034" stroke-width="2"/>
<circle cx="200" cy="222" r="26" fill="#fff4d8"/><circle cx="200" cy="126" r="7" fill="#b98b3e"/>""",
    "arc-floor-lamp": """
<ellipse cx="116" cy="352" rx="72" ry="10" fill="#00000018"/><circle cx="292" cy="190" r="110" fill="url(#glow)"/>
<path d="M112 336C84 120 176 28 292 92" fill="none" stroke="#3d4a43" stroke-width="7" stroke-linecap="round"/>
<path d="M292 92v26" stroke="#3d4a43" stroke-width="5"/>
<path d="M236 172c0-34 24-56 56-56s56 22 56 56z" fill="#2f4a3d"/>
<path d="M304 117c26 6 44 27 44 55h-30c0-24-4-42-14-55z" fill="#223a2f"/>
<ellipse cx="292" cy="172" rx="56" ry="9" fill="#fbe9bd"/>
<path d="M70 334h88l8 14H62z" fill="#bdb4a4"/><path d="M62 348h104v6H62z" fill="#988f80"/>""",
    "tide-vase": """
<ellipse cx="200" cy="346" rx="84" ry="11" fill="#00000018"/>
<path d="M200 150C196 96 214 70 250 30M206 104c-20-8-36-26-40-50M212 84c22 2 38-2 56-16" fill="none" stroke="#6d7d5b"
stroke-width="4" stroke-linecap="round"/>
<g fill="#8fa377">
<ellipse cx="254" cy="28" rx="9" ry="16" transform="rotate(38 254 28)"/>
<ellipse cx="164" cy="50" rx="8" ry="15" transform="rotate(-24 164 50)"/>
<ellipse cx="272" cy="64" rx="8" ry="15" transform="rotate(66 272 64)"/>
<ellipse cx="188" cy="82" rx="6" ry="12" transform="rotate(-60 188 82)"/>
</g>
<path d="M178 148h44c2 30 62 62 62 118 0 48-34 80-84 80s-84-32-84-80c0-56 60-88 62-118z" fill="#f4f1ea"/>
<path d="M118 252c26 16 46-10 80 2 34 12 54-8 85 2 1 58-36 90-83 90s-85-34-82-94z" fill="#5d88a0"/>
<path d="M117 262c26 16 48-8 82 4 34 12 54-8 84 4" fill="none" stroke="#a9c6d2" stroke-width="6"/>
<path d="M252 214c22 20 30 38 30 56 0 46-32 76-82 76 46-18 70-68 52-132z" fill="#00000012"/>
<ellipse cx="200" cy="148" rx="22" ry="5" fill="#cfc9bd"/>""",
    "pebble-mug": """
<ellipse cx="190" cy="330" rx="100" ry="12" fill="#00000018"/>
<path d="M170 118c-12-18 12-28 0-48M206 112c-12-20 12-30 0-52" fill="none" stroke="#ffffffb0" stroke-width="7"
stroke-linecap="round"/>
<path d="M272 190c52-14 70 14 64 44-6 32-40 48-76 40" fill="none" stroke="#d8cdbb" stroke-width="20"/>
<path d="M104 152h172c6 60 6 112-18 148-12 20-34 30-68 30s-56-10-68-30c-24-36-24-88-18-148z" fill="#e9e0d0"/>
<path d="M240 152h36c6 60 6 112-18 148-12 20-34 30-68 30 48-24 58-98 50-178z" fill="#d8cdbb"/>
<ellipse cx="190" cy="152" rx="86" ry="17" fill="#cbbfab"/><ellipse cx="190" cy="155" rx="76" ry="12" fill="#7b4f31"/>
<g fill="#8b7a64">
<circle cx="132" cy="206" r="3"/>
<circle cx="158" cy="238" r="4"/>
<circle cx="142" cy="276" r="3"/>
<circle cx="196" cy="212" r="3"/>
<circle cx="214" cy="262" r="4"/>
<circle cx="182" cy="296" r="3"/>
<circle cx="238" cy="226" r="3"/>
<circle cx="170" cy="188" r="2"/>
</g>""",
    "field-bowl": """
<ellipse cx="200" cy="316" rx="112" ry="12" fill="#00000018"/>
<circle cx="150" cy="180" r="40" fill="#d98a3d"/>
<circle cx="218" cy="168" r="44" fill="#e0a94b"/>
<circle cx="266" cy="190" r="34" fill="#c9603f"/>
<path d="M218 126c4-12 12-18 22-20" stroke="#5d6b45" stroke-width="5" fill="none" stroke-linecap="round"/>
<path d="M60 196h280c-4 70-62 118-140 118S64 266 60 196z" fill="#c9b79b"/>
<path d="M60 196h280l-3 22c-80 18-194 18-274 0z" fill="#6f8f63"/>
<path d="M284 214l53-6c-14 66-66 104-137 106 50-18 76-54 84-100z" fill="#00000014"/>
<path d="M150 312h100l-10 10h-80z" fill="#a8967a"/>""",
    "fjord-wool-throw": """
<ellipse cx="200" cy="330" rx="140" ry="12" fill="#00000018"/>
<path d="M74 262h252c14 0 20 10 20 26s-8 32-22 32H76c-14 0-22-14-22-32s6-26 20-26z" fill="#3f6378"/>
<path d="M80 204h240c16 0 22 12 22 28s-8 30-22 30H80c-14 0-22-12-22-30s6-28 22-28z" fill="#6d98ab"/>
<path d="M84 146h232c16 0 24 12 24 29s-8 29-24 29H84c-14 0-22-12-22-29s8-29 22-29z" fill="#d5e0e2"/>
<path d="M228 146h62v174h-62z" fill="#29475a" opacity=".32"/>
<path d="M244 146h8v174h-8zM266 146h8v174h-8z" fill="#f1ead8" opacity=".85"/>
<g stroke="#3f6378" stroke-width="4" stroke-linecap="round">
<path d="M84 320v18M104 320v22M124 320v18M144 320v22M164 320v18M184 320v22M204 320v18M300 320v22M320 320v18"/>
</g>
<path d="M62 204h278M60 262h282" stroke="#00000022" stroke-width="3"/>""",
    "heather-cushion": """
<ellipse cx="200" cy="330" rx="124" ry="12" fill="#00000018"/>
<path d="M84 84c40 14 192 14 232 0 12-4 18 4 14 16-14 44-14 160 0 204 4 12-4 20-14 16-40-14-192-14-232 0-12
4-18-4-14-16 14-44 14-160 0-204-4-12 2-20 14-16z" fill="#b9a3b5"/>
<g fill="none" stroke="#efe5d8" stroke-width="5">
<path d="M200 110l82 92-82 92-82-92z"/>
<path d="M200 144l52 58-52 58-52-58z"/>
</g>
<path d="M200 178l22 24-22 24-22-24z" fill="#efe5d8"/>
<path d="M316 84c12-4 18 4 14 16-14 44-14 160 0 204 4 12-4 20-14 16-20-7-68-10-116-10 66-10 104-80 116-226z"
fill="#00000012"/>""",
}

_GLOW = (
    '<defs><radialGradient id="glow"><stop offset="0" stop-color="#ffe9b0" stop-opacity=".85"/>'
    '<stop offset="1" stop-color="#ffe9b0" stop-opacity="0"/></radialGradient></defs>'
)


def product_art(slug: str, label: str = "") -> Html:
    """Draw a product. Without a `label` the drawing is decorative."""
    drawing = _DRAWINGS.get(slug, '<rect x="120" y="120" width="160" height="160" rx="18" fill="#d9d2c3"/>')
    semantics = html('role="img" aria-label="{label}"', label=label) if label else Html('aria-hidden="true"')
    return html(
        '<svg class="art art-{slug}" viewBox="0 0 400 400" {semantics}>{glow}{drawing}</svg>',
        slug=slug, semantics=semantics, glow=Html(_GLOW), drawing=Html(drawing),
    )  # fmt: skip


def hero_art() -> Html:
    """Draw a room with products of the shop."""

    def place(slug: str, x: int, y: int, scale: float) -> Html:
        drawing = Html(_DRAWINGS[slug])
        return html('<g transform="translate({x} {y}) scale({scale})">{d}</g>', x=x, y=y, scale=scale, d=drawing)

    return html(
        '<svg class="scene" viewBox="0 0 640 520" preserveAspectRatio="xMidYMid slice" aria-hidden="true">{glow}'
        '<rect width="640" height="520" fill="#dfd3bf"/><path d="M0 404h640v116H0z" fill="#c6b496"/>'
        '<path d="M62 316V152c0-52 36-88 84-88s84 36 84 88v164z" fill="#f5ecd9"/>'
        '<path d="M74 306V154c0-46 30-78 72-78s72 32 72 78v152z" fill="#a9c3c6"/>'
        '<circle cx="178" cy="150" r="26" fill="#f7d98b"/>'
        '<path d="M74 306v-70c34-26 62-30 84-10 20 18 40 20 60 6v74z" fill="#7d9a78"/>'
        '<path d="M74 306v-36c44-18 96-14 144 6v30z" fill="#5d7d60"/>'
        '<path d="M146 76v230M74 196h144" stroke="#f5ecd9" stroke-width="8"/>'
        "{pendant}"
        '<path d="M268 330h330v18H268z" fill="#8a5f3c"/><path d="M286 348h294v92H286z" fill="#a5764c"/>'
        '<path d="M433 348v92M286 440h294" stroke="#7c5433" stroke-width="4"/>'
        '<circle cx="420" cy="394" r="4" fill="#5e3f26"/>'
        '<circle cx="446" cy="394" r="4" fill="#5e3f26"/><path d="M300 440h14v48h-14zM552 440h14v48h-14z" '
        'fill="#7c5433"/>'
        "{vase}{lamp}{bowl}{throw}</svg>",
        glow=Html(_GLOW), pendant=place("halo-pendant", 336, -20, 0.56), vase=place("tide-vase", 256, 144, 0.54),
        lamp=place("ember-table-lamp", 440, 136, 0.61), bowl=place("field-bowl", 366, 228, 0.33),
        throw=place("fjord-wool-throw", 62, 316, 0.5),
    )  # fmt: skip
