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
/** The HTML, and the accessibility snapshot of what a person can reach: the dialog in front of the page, or all of it. */
const markup = () => {
  const reachable = modalOf(document) ?? readBody(document);
  return stringify({ html: documentHtml(), aria: reachable ? withCaches(() => ariaSnapshot(reachable)) : "" });
};
