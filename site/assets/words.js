// The texts of scripts in the language of the page: t`${n} of ${all} heads` is looked up as "{0} of {1} heads".

const code = document.documentElement.lang, words = code === "en" ? {} : (await import(`./words-${code}.js`)).default;

/** Returns a text in the language of the page; the values are put in their places. */
export function t(parts, ...values) {
  const key = parts.reduce((text, part, i) => `${text}{${i - 1}}${part}`);
  return (words[key] ?? key).replace(/\{(\d)\}/g, (_, i) => values[i]);
}
