// The texts of scripts in the language of the page: t`${n} of ${all} heads` is looked up as "{0} of {1} heads".

const code = document.documentElement.lang, words = code === "en" ? {} : (await import(`./words-${code}.js`)).default;

/** Returns a text in the language of the page; the values are put in their places. */
export function t(parts, ...values) {
  const key = parts.reduce((text, part, i) => `${text}{${i - 1}}${part}`);
  return (words[key] ?? key).replace(/\{(\d)\}/g, (_, i) => values[i]);
}

/**
 * Gives a frame the texts for a page of attn view, by its name, which counts when a frame enters the page. There, a score is
 * a number, not a function.
 */
export function nameFrame(frame) {
  frame.name = JSON.stringify({ language: code, words: { ...words, ...(words.scores && { score: words.scores }) } });
  frame.replaceWith(frame.cloneNode());
}
