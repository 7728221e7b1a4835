// The texts of the page in another language. A page around this one, such as a lesson, gives them as the name of the frame:
// {"language": "zh", "words": {"English text with {0}": "…"}}. They enter the page only as text.

let given = {};
try {
  given = JSON.parse(window.name) ?? {};
} catch {
  // The frame has no name or another one.
}
const words = typeof given.words === "object" && given.words ? given.words : {};

// tr returns a text in the language of the page around this one, or as it is.
export const tr = (text) => (Object.hasOwn(words, text) ? String(words[text]) : text);

// t`${n} of ${all} heads` is looked up as "{0} of {1} heads".
export function t(parts, ...values) {
  return tr(parts.reduce((text, part, i) => `${text}{${i - 1}}${part}`)).replace(/\{(\d)\}/g, (_, i) => values[i]);
}

// translate replaces the texts of an element and of all in it.
export function translate(root) {
  if (given.words && /^[\w-]{2,12}$/.test(given.language)) document.documentElement.lang = given.language;
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode;
    if (node.nodeType === Node.TEXT_NODE) node.data = node.data.replace(/\S(?:.*\S)?/s, tr);
    else for (const name of ["aria-label", "title"]) if (node.hasAttribute(name)) node.setAttribute(name, tr(node.getAttribute(name)));
  }
}
