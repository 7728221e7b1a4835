// Runs before the page is drawn: the chosen colours, and a note where a browser runs no modules from a folder.
"use strict";
(() => {
  let theme = "";
  try {
    theme = localStorage.getItem("attn-theme") || "";
  } catch {
    // Storage is blocked: the system's colours are used.
  }
  if (theme) document.documentElement.dataset.theme = theme;
  if (location.protocol !== "file:") return;
  addEventListener("load", () => {
    if (document.documentElement.dataset.script) return; // this browser runs modules from a folder
    const note = document.createElement("p");
    note.className = "note";
    note.textContent = "This browser does not run programs of pages that are opened from a folder. Text works; " +
      "for the figures, serve the folder: python3 -m http.server, or go run ./site --out DIR --serve 127.0.0.1:8080";
    document.getElementById("notes").append(note);
  });
})();
