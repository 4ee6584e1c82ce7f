// Provides full XPaths of elements: making them, and finding the element of one.

const XHTML = "http://www.w3.org/1999/xhtml";
/**
 * The XPath step of an element.
 * @param {any} element
 * @param {number} index Number of the element among its siblings of the same name, from 1.
 * @returns {string}
 */
const stepName = (element, index) =>
  element.namespaceURI === XHTML ? `${element.localName}[${index}]` : `*[name()="${element.nodeName}"][${index}]`;

/**
 * The full XPath of an element in its document or shadow root.
 * @param {any} element
 * @returns {string}
 */
const pathFromRoot = (element) => {
  let path = "";
  for (let node = unclobbered(element); node.nodeType === 1; node = unclobbered(node.parentNode ?? document)) {
    let index = 1;
    for (let other = node.previousElementSibling; other; other = unclobbered(other).previousElementSibling) {
      if (unclobbered(other).nodeName === node.nodeName) index += 1;
    }
    path = `/${stepName(node, index)}${path}`;
  }
  return path;
};

/**
 * The element of a full XPath, through shadow roots (` >>> `); null if there is none.
 * @param {string} xpath
 * @param {Document} doc
 * @returns {any}
 */
const resolve = (xpath, doc) => {
  /** @type {any} */
  let parent = doc;
  for (const [i, hop] of xpath.split(" >>> ").entries()) {
    if (i > 0) parent = parent && shadowOf(parent);
    for (const step of hop.split("/").slice(1)) {
      const [, otherNamespace, local, index] = /^(?:\*\[name\(\)="(.*)"\]|([^[]+))\[(\d+)\]$/.exec(step) || [];
      if (!parent || !index) return null;
      let left = Number(index);
      let child = unclobbered(parent).firstElementChild;
      for (; child; child = unclobbered(child).nextElementSibling) {
        const element = unclobbered(child);
        const matches = element.namespaceURI === XHTML ? element.localName === local : element.nodeName === otherNamespace;
        if (matches && --left === 0) break;
      }
      parent = child;
    }
  }
  return parent;
};
