"""The reports: one page with four client-side views, each with its own URL."""

from __future__ import annotations

from waygraph.demo_site.catalogue import ITEMS
from waygraph.demo_site.charts import BLUE, bar_chart, line_chart, share_bars
from waygraph.demo_site.layout import admin_page, link, money
from waygraph.demo_site.markup import Html, html

MONTHS = ("Oct", "Nov", "Dec", "Jan", "Feb", "Mar")
TURNOVER = (18_200, 24_900, 38_400, 16_100, 19_800, 22_700)
LAST_YEAR = (15_900, 20_100, 33_800, 15_200, 16_400, 19_300)

VIEWS = (
    ("/admin/reports", "Overview"),
    ("/admin/reports/sales", "Sales"),
    ("/admin/reports/traffic", "Traffic"),
    ("/admin/reports/inventory", "Inventory"),
)


def _overview() -> Html:
    rows = [
        html(
            '<tr><th scope="row">{m}</th><td>{a}</td><td>{b}</td><td>{d:+.0f}%</td></tr>',
            m=m, a=money(a), b=money(b), d=100 * (a - b) / b,
        )
        for m, a, b in zip(MONTHS, TURNOVER, LAST_YEAR, strict=True)
    ]  # fmt: skip
    return html(
        '<div class="row-head"><p class="line">Half a year at a glance.</p><p>'
        '<button type="button" class="button quiet" '
        'data-reveal="last-year">Compare with last year</button></p></div>{chart}'
        '<table id="last-year" hidden><thead><tr><th scope="col">Month</th><th scope="col">This year</th>'
        '<th scope="col">A year before</th>'
        '<th scope="col">Change</th></tr></thead><tbody>{rows}</tbody></table>',
        chart=line_chart(TURNOVER, MONTHS, label="Turnover by month"), rows=rows,
    )  # fmt: skip


def _sales() -> Html:
    return html(
        '<h2>Pieces sold by shelf</h2>{chart}<ol class="best"><li>Pebble mug</li><li>Ember table lamp</li>'
        "<li>Tide vase</li></ol>",
        chart=bar_chart((412, 655, 298), ("Lighting", "Ceramics", "Textiles"), label="Pieces sold by shelf"),
    )


def _traffic() -> Html:
    return html(
        "<h2>Where visitors come from</h2>{chart}<p>Most arrive by word of mouth. The letter brings the patient "
        "ones.</p>",
        chart=share_bars(
            (("Word of mouth", 46), ("Search", 28), ("Letter", 17), ("Elsewhere", 9)), label="Sources of visits"
        ),
    )


def _inventory() -> Html:
    stocked = [item for item in ITEMS if item.stock]
    amounts = [item.stock for item in stocked]
    rows = [html('<tr><td>{n}</td><td class="amount">{s}</td></tr>', n=item.name, s=item.stock) for item in stocked]
    return html(
        '<h2>In the store room</h2>{chart}<table><thead><tr><th scope="col">Piece</th>'
        '<th scope="col" class="amount">In stock</th></tr></thead>'
        "<tbody>{rows}</tbody></table>",
        chart=bar_chart(amounts, [item.name.split()[0] for item in stocked], label="Stock by piece", color=BLUE),
        rows=rows,
    )  # fmt: skip


def reports(path: str) -> Html:
    """Return the page of every report URL. It contains all views as templates; a script shows one of them."""
    templates = [
        html(
            '<template data-view="{path}" data-title="{name}">{view}</template>', path=view_path, name=name, view=view()
        )
        for (view_path, name), view in zip(VIEWS, (_overview, _sales, _traffic, _inventory), strict=True)
    ]
    return admin_page(
        "Reports", path,
        html(
            '<section class="box"><nav class="subnav" aria-label="Reports"><ul>{views}</ul></nav><div id="view">'
            '</div></section>{templates}',
            views=[html("<li>{a}</li>", a=link(view_path, name)) for view_path, name in VIEWS], templates=templates,
        ),
        section="/admin/reports",
    )  # fmt: skip
