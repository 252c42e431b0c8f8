// SPDX-License-Identifier: MIT OR Apache-2.0
// Text for people, and the making of document nodes.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Makes an HTML element. Attributes that begin with `on` are listeners. Text children are never parsed as HTML. */
export function html(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Makes an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** Sets a text only if it changes, so that nothing is laid out again for nothing. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Sets or removes an attribute only if it changes. */
export function setAttribute(node, name, value) {
  if (value === null) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** Why this page may not do something. The rights are those of `/api/router`. */
export const denied = (router, what) =>
  router?.writable
    ? `To ${what}, open the link with the token, which was printed at the start.`
    : `The server is read-only. To ${what}, start one with castanet run --http-write.`;

/** Formats a number with a unit prefix: 1234567 becomes `1.23 M`. */
export function number(n) {
  if (n >= 1e9) return `${(n / 1e9).toFixed(2)} G`;
  if (n >= 1e6) return `${(n / 1e6).toFixed(2)} M`;
  if (n >= 1e4) return `${(n / 1e3).toFixed(1)} k`;
  if (n >= 100 || Number.isInteger(n)) return n.toFixed(0);
  return n.toFixed(1);
}

/** Formats packets per second. */
export const rate = (n) => (n === null || n === undefined ? "–" : `${number(n)}/s`);

/** Formats a share of 1. */
export const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;

/** Formats a whole number with thin spaces between thousands. */
export const whole = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u2009");
