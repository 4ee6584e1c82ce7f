"""Forty forms as sites have them, and where the schema inferred for one differs from what browsers derive for it.

Each is the attributes of a form and its content. With `toolname` and `tooldescription` it declares a tool, for which the
browser derives a schema. Names, types, required properties and choices of both agree, but for `DIFFERENCES`.
"""

from __future__ import annotations

from itertools import count

#: Attributes and content of each form.
FORMS: dict[str, tuple[str, str]] = {
    "search with a button": (
        "action=/search role=search",
        "<input type=search name=q aria-label=Words><button>Find it</button>",
    ),
    "search of a wiki": (
        "action=/doku.php method=get role=search",
        (
            "<input type=hidden name=do value=search><input type=hidden name=id value=start>"
            "<input name=q type=text title='[F]' accesskey=f placeholder=Search><button value=1 type=submit>"
            "Search</button>"
        ),
    ),
    "search of a manual": (
        "action=search.html",
        (
            "<input placeholder='Quick search' aria-label='Quick search' type=search name=q>"
            "<input type=submit value=Go><input type=hidden name=check_keywords value=yes>"
            "<input type=hidden name=area value=default>"
        ),
    ),
    "login of a wiki": (
        "method=post",
        (
            "<fieldset><legend>Log In</legend><input type=hidden name=sectok value=1><label for=u><span>"
            "Username</span></label><input id=u name=u required><label>Password <input type=password name=p>"
            "</label><label><input type=checkbox name=r value=1> Remember me</label><button>Log In</button>"
            "</fieldset>"
        ),
    ),
    "timeline of a repository": (
        "action=/timeline method=get",
        (
            "<select name=y><option value=all>Any Type</option><option value=ci selected>Check-ins</option>"
            "<option value=e>Technotes</option></select> Max:<select name=n><option>50<option>100<option value=0>"
            "unlimited</select><label><input type=checkbox name=brbg> Branch colours</label><input type=submit>"
        ),
    ),
    "new ticket": (
        "action=/tktnew method=post",
        (
            "<table><tr><td>Title:<td><input name=title size=60><tr><td>Type:<td><select name=type>"
            "<option value=''>Choose<option>Code_Defect<option>Feature_Request</select><tr><td>Details:<td>"
            "<textarea name=mutype rows=9></textarea><tr><td>Email:<td><input name=private_contact></table>"
            "<input type=submit name=preview value=Preview>"
        ),
    ),
    "filters of an administration": (
        "",
        (
            "<label for=f1>Edited by</label><select name=owner id=f1 multiple><option value=1>ann<option value=2>"
            "bob</select><label>Edited since <input type=date name=since></label><fieldset><legend>"
            "Status</legend><label><input type=radio name=live value=true>Live</label><label>"
            "<input type=radio name=live value=false>Draft</label></fieldset><button>Apply filters</button>"
        ),
    ),
    "new page of an administration": (
        "method=post enctype=multipart/form-data",
        (
            "<label>Title* <input name=title maxlength=255 required></label><label>"
            "Slug <input name=slug pattern='[a-z-]+'></label><label>"
            "Publish <input type=datetime-local name=go_live_at></label><label>"
            "Picture <input type=file name=image></label><button name=action value=publish>Publish</button>"
            "<button>Save draft</button>"
        ),
    ),
    "demo form of a template": (
        "data-parsley-validate",
        (
            "<label for=fn>First Name <span>*</span></label><input id=fn name=first required><label>"
            "Gender</label><div data-toggle=buttons><label><input type=radio name=gender value=male> Male</label>"
            "<label><input type=radio name=gender value=female checked> Female</label></div><label>"
            "Birthday <input name=birthday type=text></label><button type=reset>Reset</button><button>"
            "Submit</button>"
        ),
    ),
    "switches of a template": (
        "method=post",
        (
            "<label><input type=checkbox name=switch checked> Checked</label><label>"
            "<input type=checkbox name=off> Unchecked</label><label>"
            "<input type=range name=volume min=0 max=100 step=10> Volume</label><input type=color name=accent>"
        ),
    ),
    "newsletter": (
        "method=post action=/newsletter",
        "<input type=email name=email aria-label='Your email' required><button>Sign up</button>",
    ),
    "contact": (
        "method=post action=/help/contact",
        (
            "<label for=from>Your email</label><input id=from type=email name=from required><label>"
            "About <select name=about><option value=order>An order<option value=other>Something else</select>"
            "</label><label>Message <textarea name=message required minlength=10 maxlength=500></textarea>"
            "</label><button>Send</button>"
        ),
    ),
    "into the cart": (
        "method=post action=/cart",
        (
            "<input type=hidden name=slug value=mug><label>Size <select name=size required><option value=''>"
            "Choose a size<option>S<option>M<option disabled>L</select></label><label>"
            "Quantity <input type=number name=n min=1 max=9 value=1></label><button>Add to cart</button>"
        ),
    ),
    "only a button": (
        "method=post action=/logout",
        "<button>Sign out</button>",
    ),
    "address": (
        "method=post",
        (
            "<label>Name <input name=name autocomplete=name required></label><label>"
            "Street <input name=street required></label><label>"
            "Postcode <input name=zip inputmode=numeric pattern='[0-9]{5}'></label><label>"
            "Country <select name=country><optgroup label=Near><option value=DE>Germany<option value=FR>"
            "France</optgroup><optgroup label=Far><option value=JP>Japan</optgroup></select></label><button>"
            "Save</button>"
        ),
    ),
    "flight": (
        "action=/flights",
        (
            "<input type=search name=from list=airports placeholder=From required>"
            "<input type=search name=to list=airports placeholder=To><datalist id=airports><option value=FRA>"
            "<option value=CDG></datalist><input type=date name=out required><input type=date name=back>"
            "<input type=number name=adults min=1 max=8 step=1><button>Search flights</button>"
        ),
    ),
    "table of a report": (
        "action=/report",
        (
            "<label>Month <input type=month name=m></label><label>Week <input type=week name=w></label><label>"
            "At <input type=time name=t step=60></label><button>Show</button>"
        ),
    ),
    "survey": (
        "method=post",
        (
            "<fieldset><legend>Which do you use?</legend><label><input type=checkbox name=uses value=a> A</label>"
            "<label><input type=checkbox name=uses value=b> B</label></fieldset><fieldset><legend>"
            "How often?</legend><label><input type=radio name=often value=day required> Daily</label><label>"
            "<input type=radio name=often value=week> Weekly</label></fieldset><button>Answer</button>"
        ),
    ),
    "telephone": (
        "",
        (
            "<label>Phone <input type=tel name=tel pattern='[0-9 ]+'></label><label>"
            "Site <input type=url name=url></label><button>OK</button>"
        ),
    ),
    "price": (
        "action=/list",
        (
            "<input type=number name=min step=any placeholder=Min>"
            "<input type=number name=max step=0.01 min=0 placeholder=Max><button>Filter</button>"
        ),
    ),
    "number without steps": (
        "",
        (
            "<label>Length <input type=number name=length></label><label>"
            "Offset <input type=number name=offset min=-5 step=0.5></label>"
        ),
    ),
    "steps from a minimum": (
        "",
        "<label>Odd <input type=number name=odd min=1 step=2></label><input type=submit>",
    ),
    "range without limits": (
        "",
        ("<label>Zoom <input type=range name=zoom></label><label>Turn <input type=range name=turn max=360></label>"),
    ),
    "disabled fields": (
        "",
        (
            "<fieldset disabled><input name=a></fieldset><input name=b disabled><input name=c>"
            "<select name=d disabled><option>x</select>"
        ),
    ),
    "read-only fields": (
        "",
        "<input name=number readonly value=7><textarea name=log readonly></textarea><input name=note>",
    ),
    "several addresses": (
        "",
        (
            "<input type=email name=to multiple required><input name=subject><textarea name=body></textarea>"
            "<button>Send</button>"
        ),
    ),
    "lists of one choice": (
        "",
        "<label><input type=radio name=only value=x>X</label><select name=one><option value=1>One</select>",
    ),
    "choice with an empty value": (
        "",
        ("<select name=sort><option value=''>Any</option><option value=asc>Up</option></select><button>Sort</button>"),
    ),
    "list of several rows": (
        "",
        "<select name=rows size=3 required><option>1<option>2<option>3</select><button>Go</button>",
    ),
    "names with brackets": (
        "",
        "<input name='user[name]'><input name='user[mail]' type=email><input name='a.b'><button>Go</button>",
    ),
    "names of properties": (
        "",
        "<input name=action><input name=method><input name=elements><input name=children><button>Go</button>",
    ),
    "name of a prototype": (
        "",
        "<input name=constructor><input name=toString><button>Go</button>",
    ),
    "fields elsewhere": (
        "id=elsewhere",
        "<input name=inside><button>Go</button></form><input name=outside form=elsewhere>",
    ),
    "unchecked consent": (
        "method=post",
        "<label><input type=checkbox name=terms required> I agree</label><button>Go on</button>",
    ),
    "unknown type": (
        "",
        "<input type=bogus name=x required><input type=text name=y><button>Go</button>",
    ),
    "image button": (
        "action=/find",
        "<input name=q><input type=image src=/g.png alt=Go name=at>",
    ),
    "described parameters": (
        "",
        (
            "<input name=a toolparamdescription='First one'><label>"
            "B <input name=b toolparamdescription='Second one'></label>"
        ),
    ),
    "same name twice": (
        "",
        "<input name=q><input name=q><input name=other><button>Go</button>",
    ),
    "box beside its hidden value": (
        "method=post",
        "<input type=hidden name=agree value=0><input type=checkbox name=agree value=1><button>Go</button>",
    ),
    "fields without a name": (
        "",
        "<label>City <input></label><input id=street><input name=zip><button>Go</button>",
    ),
}

#: Properties that only the inferred schema has. The browser leaves out a property whose fields are of several types, hidden
#: ones included, and a field without a name: it is not submitted, but a script may read it.
DIFFERENCES: dict[str, set[str]] = {
    "box beside its hidden value": {"agree"},
    "fields without a name": {"city", "street"},
}


def page_of_forms(*, declared: bool) -> str:
    """Return a page with all forms, labelled with their names, with or without the attributes of a tool."""
    numbers = count()

    def labelled(name: str, attributes: str, content: str) -> str:
        tool = f"toolname=form_{next(numbers)} tooldescription='{name}' toolautosubmit" if declared else ""
        return f"<form aria-label='{name}' {attributes} {tool}>{content}</form>"

    return "<title>Forms</title>" + "".join(labelled(name, *form) for name, form in FORMS.items())
