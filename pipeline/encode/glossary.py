"""What is a page of this name for? Plain words for the names that pages of web applications commonly have.

People ask for what a page does ("money given back"), pages say what they are called ("Credit memos"), and a small
sentence model does not always know that one means the other. Definitions are written as a dictionary would, for any
site, and must not repeat the wording of benchmark questions: that raises the benchmark and nothing else. English only;
names in other languages find nothing here, and lose nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

#: A title part or heading with more words than this is a sentence, not a page's name.
MAX_NAME_WORDS = 4

#: names | separated = definition
_ENTRIES = """
home|home page|homepage|start = entry page of the site, with highlights and ways into its sections
about|about us|our story|who we are = background of the organisation: origin, people and values
contact|contact us|get in touch = ways to reach the organisation: message form, telephone, postal address
help|support|faq|questions and answers|help center|help centre = explanations and frequently asked questions
search|search results = entries that match the words typed
privacy|privacy policy = how personal data is collected and used
terms|terms of service|imprint|legal notice = legal conditions of use
news|blog|press = articles and announcements by date
newsletter|subscribers|newsletter subscribers = regular e-mail and its recipients
careers|jobs|vacancies = employment offers
sitemap|all pages = directory of every page
log in|login|sign in = authentication of a user with name and password
sign up|register|registration|create account = form that opens a user account
reset password|forgot password|password reset = recovery of a lost password
password|change password|edit password = replacement of the password of an account
profile|my profile|account details|personal details|user settings = personal data of the signed-in user, for editing
account|my account = personal area of the signed-in user
addresses|address book = saved postal addresses for delivery and billing
order history|my orders|past orders|purchase history = previous purchases of the customer
parcel|your parcel|tracking|track order = delivery progress of one shipment
wishlist|wish list|favourites|favorites|saved items|starred|bookmarks = entries marked for later
payment methods|payment|wallet = means of payment such as cards
notifications|alerts = which messages are sent on which occasions
security|two-factor authentication|sessions = protection of the account and devices in use
access tokens|api keys|ssh keys|deploy keys = credentials for programs and machines
subscription|subscriptions|plan|billing = recurring payments and their renewal
cart|your cart|shopping cart|basket|bag = chosen articles with quantities and total, before ordering
checkout = delivery and payment step of an order
shop|store|all products = complete assortment offered to customers
new arrivals|what's new|just in = recently added articles, novelties
sale|deals|offers|discounts = articles at reduced prices
bestsellers|most viewed|trending|popular = entries with the highest demand
specification|specifications|technical details = technical data, material, dimensions
reviews|ratings|testimonials = opinions and scores by customers
size guide|size chart|find your size = table of sizes for choosing the right fit
shipping|delivery = duration and cost of sending goods
returns|return policy = conditions for sending goods back, refund
gift wrap|gift wrapping = packaging of goods as a present
gift card|gift cards = prepaid voucher to give away
store locator|our stores = physical locations
dashboard = key figures and recent activity at a glance
overview|summary = condensed view of the most important facts
back office|admin|administration|merchant admin|control panel = management area for staff
orders|sales orders = purchases by customers with their processing state, for staff
order = contents, buyer and state of one purchase
invoices|invoice = bills issued to customers
shipments|shipment = goods dispatched from the warehouse
refunds|credit memos|credit memo = amounts repaid to customers
customers|clients = register of buyers
customer groups|segments = classes of buyers
customers now online|online = visitors present at the moment
products|catalogue|catalog = articles with prices and availability, for management
new product|add product|edit product = form for the data of one article: name, price, stock
categories|category|departments = grouping of articles by kind
inventory|stock|low stock|low stock report = quantities on hand, articles to reorder
reports|report|analytics|statistics = evaluations of business figures over time
sales|sales report|revenue|turnover = amounts sold by period and article
traffic|traffic report|visitors|audience = numbers and origin of website visits
abandoned carts = purchases that were started and not completed
search terms = words that visitors searched for
compare|comparison = differences between two periods or articles
settings|preferences|configuration = options that control how the application behaves
taxes|tax|vat|tax rates|tax zones and rates = tax percentages by country and region
promotions|coupons|coupon|vouchers|cart price rule|catalog price rule = price reductions by code, group or period
marketing|campaigns = advertising and customer acquisition
users|staff|employees = people with access to the administration
members|project members|collaborators = people with access and their rights
roles|permissions|access control = rights by group of users
invite members|invite = invitation of further people
pages|content|cms = texts of the website, for editing
media|gallery|images|photos = pictures and videos
moderation|moderation log|pending reviews = checking and removal of contributions
bans|blocked users|block list = users excluded and the reason
audit log|activity|activity log|event log = record of actions, with time and author
backups|backup = copies of the data as protection against loss
import|import contacts = transfer of data into the application from a file
export = transfer of data out of the application as a file
integrations|webhooks|apps|plugins|extensions = connections with other programs
status|system status = availability of the service
stores|store view|languages|language = variants of the site by language or country
holiday mode|maintenance mode = temporary closure
repository|repositories|projects|files = source code and its folders
new project|new repository = creation of an empty workspace for source code
commits|commit history = record of changes to the source code by author
branches = parallel lines of development
releases|tags|changelog = published versions of the software and their changes
issues|bugs|tickets = reported problems and requests with their state
new issue|new ticket|report a bug = form for reporting a problem or request
issue boards|boards|board|kanban = tasks as cards in columns by progress
milestones|roadmap|sprints = planned goals and dates
merge requests|merge request|pull requests|pull request|code review = proposed code changes awaiting review
pipelines|pipeline|builds|ci = automatic builds and tests with their outcome
tests|test report = results of automatic tests
deployments|environments|runners = machines and installations of the software
variables|secrets = protected configuration values for builds
wiki|handbook|knowledge base|documentation|docs = jointly written reference articles
snippets = short pieces of code
inbox|mailbox|messages = received messages
compose|new message = writing of a message
drafts = unfinished texts
sent = messages written by the user
spam|junk = unsolicited advertising, filtered out
trash|recycle bin|bin = deleted entries that can still be restored
archive = entries put aside
filters|rules = automatic sorting of incoming entries
forwarding|imap access = use of another mail program or mailbox
vacation responder|out of office|auto-reply = automatic answer during absence
contacts = known people with addresses and telephone numbers
calendar|schedule|agenda = appointments by day and week
create event|new event|event = an appointment with time, place and guests
tasks|to do|reminders = open duties
documents|drive|folders = stored files
share|sharing = access to an entry for others
forums|forum|communities|groups|list of forums = discussion areas by subject
thread|topic|discussion = contributions to one subject
create submission|new post|new topic|new thread = form for publishing a contribution
flights|hotels|bookings|reservations|booking = travel and accommodation
courses|lessons|classes = teaching units
grades|marks = assessment of pupils
transactions|statement|statements = account movements
transfer|send money = payment to another account
balance|accounts = money available
appointments|prescriptions = medical care
videos|playlists|music = entertainment to watch or hear
map|directions = location and way there
"""

_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")


@cache
def _definitions() -> dict[str, str]:
    definitions: dict[str, str] = {}
    for line in _ENTRIES.strip().splitlines():
        names, _, definition = line.partition(" = ")
        for name in names.split("|"):
            if definitions.setdefault(name, definition) != definition:
                raise ValueError(f"The glossary defines '{name}' twice.")
    return definitions


@cache
def _longest() -> int:
    return max(len(name.split()) for name in _definitions())


def definitions(names: Iterable[str]) -> tuple[str, ...]:
    """Definitions of the page names found in title parts, headings or URL words, in their order, each once.

    Longer names win over the names inside them.

    >>> definitions(["Order history"])
    ('previous purchases of the customer',)
    """
    found: dict[str, None] = {}
    for name in names:
        for definition in _matches(name):
            found.setdefault(definition)
    return tuple(found)


def _matches(text: str) -> Iterable[str]:
    words = [word.lower().replace("\u2019", "'") for word in _WORD.findall(text)]
    start = 0
    while start < len(words):
        for size in range(min(_longest(), len(words) - start), 0, -1):
            if definition := _definitions().get(" ".join(words[start : start + size])):
                yield definition
                start += size
                break
        else:
            start += 1
