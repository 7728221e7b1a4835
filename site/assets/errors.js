// Errors of the program that a reader can cause, in the language of the page. Others are in English.

import { t } from "./words.js";

const kinds = [
  [/^the text is empty$/, () => t`the text is empty`],
  [/^the text has ([\d,]+) characters; the model reads at most (\d+)$/, (n, most) => t`the text has ${n} characters; the model reads at most ${most}`],
  [/^the text has ([\d,]+) bytes, want at most ([\d,]+)$/, (n, most) => t`the text has ${n} bytes, want at most ${most}`],
  [/^there are no observations: attention needs at least one key$/, () => t`there are no observations: attention needs at least one key`],
  [/^one observation has no others to be estimated from: add a second one$/, () => t`one observation has no others to be estimated from: add a second one`],
  [/^no training has been started$/, () => t`no training has been started`],
  [/^choose a model first$/, () => t`choose a model first`],
  [/width ([\d,]+) is not divisible by ([\d,]+) heads$/, (width, heads) => t`width ${width} is not divisible by ${heads} heads`],
  [/has no ([\w.]+\.\w+)$/, (file) => t`the model has no ${file}`],
  [/has more than ([\d,]+) tokens, the limit of the model$/, (most) => t`the text has more than ${most} tokens, the limit of the model`],
  [/model_type "?([\w.-]+)"?/, (type) => t`attn cannot open models of the type ${type}`],
  [/^(\S+) could not be downloaded$/, (file) => t`${file} could not be downloaded`],
  [/^the download of (\S+) was interrupted$/, (file) => t`the download of ${file} was interrupted`],
  [/^(\S+): the file is damaged or cut short$/, (file) => t`${file}: the file is damaged or cut short`],
  [/^(\S+) is missing or damaged$/, (file) => t`${file} is missing or damaged`],
  [/^(\S+: \d{3} .*)$/, (answer) => t`the server answers ${answer}`],
  [/^(\S+) does not fit this browser, or the other files of the site$/, (file) => t`${file} does not fit this browser, or the other files of the site`],
  [/^this browser has no WebAssembly$/, () => t`this browser has no WebAssembly`],
  [/^this browser has no vectors for WebAssembly$/, () => t`this browser has no vectors for WebAssembly`],
  [/^this browser cannot decompress programs: it has no DecompressionStream$/, () => t`this browser cannot decompress programs: it has no DecompressionStream`],
  [/^there is not enough memory$/, () => t`there is not enough memory`],
  [/^it has ended; the memory of this tab may be full$/, () => t`it has ended; the memory of this tab may be full`],
];

/** Returns an error of the program in the language of the page. */
export function told(error) {
  if (document.documentElement.lang === "en") return error;
  for (const [kind, words] of kinds) {
    const found = kind.exec(error);
    if (found) return words(...found.slice(1));
  }
  return t`the program reports: ${error}`;
}
