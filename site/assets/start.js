// Runs before the page is drawn: the chosen colours and language, and notes for pages whose scripts do not run or fail.
"use strict";
(() => {
  let theme = "";
  try {
    theme = localStorage.getItem("attn-theme") || "";
  } catch {
    // Storage is blocked: the system's colours are used.
  }
  if (theme) document.documentElement.dataset.theme = theme;
  try {
    document.documentElement.dataset.code = localStorage.getItem("attn-code") || "go";
  } catch {
    // Storage is blocked: code is in Go.
  }
  // An English page leads to the language that is read in this tab. If it was not opened from another page, it leads to the
  // chosen language, or to the browser's.
  let language = "", here = "";
  try {
    here = sessionStorage.getItem("attn-language") || "";
    language = here || localStorage.getItem("attn-language") || "";
  } catch {
    // Storage is blocked: the browser's language is used.
  }
  language ||= navigator.language.slice(0, 2);
  const other = document.querySelector(`link[hreflang="${CSS.escape(language)}"]`);
  if (other && document.documentElement.lang === "en" && language !== "en" && (here || !document.referrer.startsWith(location.origin))) {
    location.replace(other.href + location.hash);
    return;
  }
  try {
    if (document.querySelector("link[hreflang]")) sessionStorage.setItem("attn-language", document.documentElement.lang);
  } catch {
    // Storage is blocked.
  }
  const words = document.currentScript.dataset; // texts in the language of the page
  // What is below the first figure is shown once the figures are drawn, or fail, or take long: nothing moves then.
  const show = () => (document.documentElement.dataset.first = "");
  setTimeout(show, 12_000);
  const note = (text, kind) => {
    show();
    const line = document.createElement("p");
    line.className = kind;
    line.textContent = text;
    document.getElementById("notes").append(line);
    return line;
  };
  if (location.protocol === "file:") {
    addEventListener("load", () => {
      if (!document.documentElement.dataset.script) note(words.folder, "note"); // others do
    });
    return;
  }

  /** Says that the page has failed, unless it says so already, and offers to load it again. */
  const tell = (text) => {
    const notes = document.getElementById("notes");
    if (!notes) addEventListener("DOMContentLoaded", () => tell(text));
    else if (!notes.querySelector(".bad")) {
      const again = document.createElement("button");
      again.textContent = words.again;
      again.onclick = () => location.reload();
      note(text + " ", "note bad").append(again);
    }
  };
  const failed = (event, problem) => {
    if (problem?.told) event.preventDefault(); // page.js has shown it
    else if (problem instanceof SyntaxError) tell(words.damaged.replace("{0}", event.filename?.split("/").at(-1) || "A script"));
    else if (problem) tell(words.failed.replace("{0}", problem.message ?? problem));
  };
  addEventListener("unhandledrejection", (event) => failed(event, event.reason));
  addEventListener("error", (event) => {
    const { src, href } = event.target;
    if (event instanceof ErrorEvent) failed(event, event.error); // without one, it is a warning about the layout
    else if (event.target.matches("script, link")) tell(words.missing.replace("{0}", (src || href).split("/").at(-1)));
  }, true); // events of elements do not bubble
})();
