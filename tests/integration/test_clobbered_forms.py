"""Forms whose fields are named like properties of elements: reading a page with one neither fails nor hangs."""

from tests.integration.test_page_script import look

#: Properties that the in-page script reads of elements, and what real forms call their fields.
_PROPERTIES = (
    "action addEventListener ariaLabel assignedSlot attributes checkVisibility childNodes children className "
    "clientHeight closest contains dataset elements firstChild firstElementChild form getAttribute "
    "getBoundingClientRect getClientRects getRootNode hasAttribute hidden id inert innerHTML innerText isConnected "
    "labels lastElementChild length localName matches method name namespaceURI nextElementSibling nextSibling "
    "noValidate nodeName nodeType offsetParent outerHTML ownerDocument parentElement parentNode "
    "previousElementSibling querySelector querySelectorAll requestSubmit reset role scrollHeight scrollTo scrollTop "
    "shadowRoot style submit tagName target textContent title type value "
)
NAMES = _PROPERTIES.split()
#: Click listeners of forms, of lists around them and of the page.
LISTENERS = """<script>
for (const each of document.querySelectorAll('form, .list'))
    EventTarget.prototype.addEventListener.call(each, 'click', (event) => { pick(event); });
document.addEventListener('click', (event) => { pick(event); });
function pick() {}
</script>"""


def forms_with(name):
    fields = f"<input name={name} aria-label='{name} first'><input name=other aria-label='{name} other'>"
    items = f"<li>a<form>{fields}</form><li>b<form role=row>{fields}</form><li>c"
    return f"""<section><h2>{name}</h2><form>{fields}<ul><li>a<li>b<li>c</ul><button>Go</button></form>
    <ul class=list>{items}</ul><div>{f"<form class=c>{fields}</form>" * 4}</div>
    <form toolname=t{name} tooldescription=d style="height: 50px; overflow: auto">{fields}<p style="height: 900px">x</p>
    <button>Go</button></form></section>"""


def test_a_page_is_read_whatever_the_fields_of_its_forms_are_called():
    seen = look(f"<title>t</title><h1>Forms</h1>{''.join(map(forms_with, NAMES))}{LISTENERS}")
    names = {candidate.action.name for candidate in seen.candidates}
    assert {f"{name} other" for name in NAMES} <= names
    assert {f"t{name}" for name in NAMES} <= {tool.name for tool in seen.tools}
