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
  // An English lesson that was not opened from another page leads to the chosen language, or to the browser's.
  let language = navigator.language.slice(0, 2);
  try {
    language = localStorage.getItem("attn-language") || language;
  } catch {
    // Storage is blocked: the browser's language is used.
  }
  const other = document.querySelector(`link[hreflang="${CSS.escape(language)}"]`);
  if (other && document.documentElement.lang === "en" && language !== "en" && !document.referrer.startsWith(location.origin)) {
    location.replace(other.href + location.hash);
    return;
  }
  const note = (text, kind) => {
    const line = document.createElement("p");
    line.className = kind;
    line.textContent = text;
    document.getElementById("notes").append(line);
    return line;
  };
  if (location.protocol === "file:") {
    addEventListener("load", () => {
      if (!document.documentElement.dataset.script) note("This browser does not run programs of pages that are opened from a folder. Text works; " + // others do
        "for the figures, serve the folder: python3 -m http.server, or go run ./site --out DIR --serve 127.0.0.1:8080", "note");
    });
    return;
  }

  /** Says that the page has failed, unless it says so already, and offers to load it again. */
  const tell = (text) => {
    const notes = document.getElementById("notes");
    if (!notes) addEventListener("DOMContentLoaded", () => tell(text));
    else if (!notes.querySelector(".bad")) {
      const again = document.createElement("button");
      again.textContent = "Start again";
      again.onclick = () => location.reload();
      note(text + " ", "note bad").append(again);
    }
  };
  const failed = (event, problem) => {
    if (problem?.told) event.preventDefault(); // page.js has shown it
    else if (problem instanceof SyntaxError) tell(`${event.filename?.split("/").at(-1) || "A script"} is damaged: this page does not work.`);
    else if (problem) tell(`This page has failed: ${problem.message ?? problem}`);
  };
  addEventListener("unhandledrejection", (event) => failed(event, event.reason));
  addEventListener("error", (event) => {
    const { src, href } = event.target;
    if (event instanceof ErrorEvent) failed(event, event.error); // without one, it is a warning about the layout
    else if (event.target.matches("script, link")) tell(`${(src || href).split("/").at(-1)}, or a file that it needs, is missing or damaged: this page does not work.`);
  }, true); // events of elements do not bubble
})();
