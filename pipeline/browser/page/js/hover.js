// Provides `hoverTargets`: elements that reveal something when the pointer is over them, by style sheets.

const REVEALING =
  /(^|;)\s*(display|visibility|opacity|max-height|height|transform|clip|clip-path|left|top|right|grid-template-rows)\s*:/;

/**
 * Collect [selector of the hovered element, selector of the revealed elements] of rules that could reveal something.
 * @param {CSSRuleList} rules
 * @param {[string, string][]} found
 */
const readHoverRules = (rules, found) => {
  for (const rule of /** @type {any} */ (rules)) {
    const selectors = rule.selectorText;
    if (selectors?.includes(":hover") && REVEALING.test(rule.style.cssText)) {
      for (const selector of selectors.split(/,(?![^(]*\))/)) {
        const at = selector.indexOf(":hover");
        // The rule must style another element than the hovered one.
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

/** Number of rules and hover rules by style sheet; a sheet whose number changed is read again. @type {WeakMap<CSSStyleSheet, [number, [string, string][]]>} */
const rulesOfSheets = new WeakMap();
/** @param {CSSStyleSheet} sheet */
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

/**
 * The elements of a document to hover.
 * @param {Document} doc
 * @returns {Set<Element>}
 */
const hoverTargets = (doc) => {
  /** @type {Set<Element>} */
  const targets = new Set();
  const hasHiddenText = (/** @type {any} */ element) => !element.checkVisibility(VISIBLE) && element.textContent.trim() !== "";
  for (const sheet of [...doc.styleSheets, ...(doc.adoptedStyleSheets || [])]) {
    for (const [hovered, revealed] of hoverRulesOf(sheet)) {
      /** @type {any} */
      let owners;
      /** @type {any} */
      let parts;
      try {
        owners = doc.querySelectorAll(hovered);
        parts = owners.length ? doc.querySelectorAll(revealed) : [];
      } catch {
        continue; // a selector that querySelectorAll rejects (a pseudo-element, for example) reveals no element
      }
      if (!parts.length) continue;
      const siblings = new Map(); // parent -> the owners in it
      for (const owner of owners) {
        const parent = unclobbered(owner).parentElement;
        if (siblings.has(parent)) siblings.get(parent).push(owner);
        else siblings.set(parent, [owner]);
      }
      for (const part of parts) {
        let isHidden = null;
        for (let ancestor = part; ancestor; ancestor = unclobbered(ancestor).parentElement) {
          for (const owner of siblings.get(ancestor) || []) {
            // Content that the pointer holds open at this moment is still opened by hovering.
            if (!owner.matches(":hover") && !(isHidden ??= hasHiddenText(part))) continue;
            // A person points at the link or button inside the hovered box.
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
