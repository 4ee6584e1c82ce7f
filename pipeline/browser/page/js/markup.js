// Provides `markup`: what is stored of the page besides its snapshot.

/**
 * The HTML of this document with its shadow roots, as `<template shadowrootmode>`. Closed ones are included as far as this
 * script knows them. Documents in frames are not.
 */
const documentHtml = () => {
  const root = document.documentElement;
  if (!root) return "";
  searchRoots();
  const outer = /** @type {Element} */ (root.cloneNode(false)).outerHTML;
  const end = outer.lastIndexOf("</");
  const doctype = document.doctype ? new XMLSerializer().serializeToString(document.doctype) : "";
  return `${doctype}${outer.slice(0, end)}${root.getHTML({ shadowRoots: shadowRoots() })}${outer.slice(end)}`;
};
/**
 * What a person can reach: a CSS selector that also finds elements in open shadow roots, and the number of the element among
 * those that match. It is the body, unless a dialog is in front of it; empty if no selector finds it.
 * @returns {[selector: string, nth: number]}
 */
const reachablePart = () => {
  const modal = modalOf(document);
  if (!modal) return [readBody(document)?.localName === "body" ? "body" : "", 0];
  for (let root = modal.getRootNode(); root !== document; root = /** @type {ShadowRoot} */ (root).host.getRootNode()) {
    if (/** @type {ShadowRoot} */ (root).mode === "closed") return ["", 0];
  }
  const selector = modal.matches(":modal") ? ":modal" : CLAIMED_MODAL;
  return [selector, inAllRoots(document, selector).indexOf(modal)];
};
const markup = () => stringify({ html: documentHtml(), reachable: reachablePart() });
