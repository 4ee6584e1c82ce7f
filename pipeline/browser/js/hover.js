// Which elements reveal something when the pointer is over them?

const REVEALS =
  /(^|;)\s*(display|visibility|opacity|max-height|height|transform|clip|clip-path|left|top|right|grid-template-rows)\s*:/;

// [selector of the hovered element, selector of what the rule is about], for rules that could reveal something.
const readHoverRules = (rules, found) => {
  for (const rule of rules) {
    const selectors = rule.selectorText;
    if (selectors?.includes(":hover") && REVEALS.test(rule.style.cssText)) {
      for (const selector of selectors.split(/,(?![^(]*\))/)) {
        const at = selector.indexOf(":hover");
        // The rule must be about something else than the hovered element itself.
        if (at >= 0 && /^[^\s>+~]*[\s>+~]/.test(selector.slice(at + 6))) {
          found.push([selector.slice(0, at).trim() || "*", selector.replace(/:hover/g, "")]);
        }
      }
    }
    const nested = rule.cssRules;
    if (nested?.length) readHoverRules(nested, found);
  }
  return found;
};

const rulesOfSheets = new WeakMap(); // style sheet -> [number of its rules, its hover rules]: read again when it grew
const hoverRulesOf = (sheet) => {
  let rules;
  try {
    rules = sheet.cssRules;
  } catch {
    return []; // a style sheet of another origin: its rules cannot be read
  }
  const known = rulesOfSheets.get(sheet);
  if (known?.[0] === rules.length) return known[1];
  const found = readHoverRules(rules, []);
  rulesOfSheets.set(sheet, [rules.length, found]);
  return found;
};

const hoverTargets = (doc) => {
  const targets = new Set();
  const hidden = (element) => !element.checkVisibility(FULLY) && element.textContent.trim() !== "";
  for (const sheet of [...doc.styleSheets, ...(doc.adoptedStyleSheets || [])]) {
    for (const [hovered, revealed] of hoverRulesOf(sheet)) {
      let owners, parts;
      try {
        owners = doc.querySelectorAll(hovered);
        parts = owners.length ? doc.querySelectorAll(revealed) : [];
      } catch {
        continue; // a selector that querySelectorAll refuses (a pseudo-element, say) reveals no element
      }
      if (!parts.length) continue;
      const siblings = new Map(); // parent -> the owners in it
      for (const owner of owners) {
        const parent = plain(owner).parentElement;
        if (siblings.has(parent)) siblings.get(parent).push(owner);
        else siblings.set(parent, [owner]);
      }
      for (const part of parts) {
        let isHidden = null;
        for (let around = part; around; around = plain(around).parentElement) {
          for (const owner of siblings.get(around) || []) {
            // What the pointer holds open right now is still something that hovering opens.
            if (!owner.matches(":hover") && !(isHidden ??= hidden(part))) continue;
            // Point at what a person would point at: the link or button that the hovered box carries.
            const trigger = owner.matches("a, button, [role], [tabindex]")
              ? owner
              : owner.querySelector(":scope > a, :scope > button, :scope > [role], :scope > [tabindex]");
            targets.add(trigger?.checkVisibility() ? trigger : owner);
          }
        }
      }
    }
  }
  for (const element of doc.querySelectorAll("[onmouseenter], [onmouseover]")) targets.add(element);
  return targets;
};
