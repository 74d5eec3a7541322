"use strict";

/* Keys, and how long a suspect was looked at; the page works without this script. */
const form = document.getElementById("answer");
if (form) {
  const shown = performance.now();
  form.addEventListener("submit", () => {
    form.elements.seconds.value = ((performance.now() - shown) / 1000).toFixed(2);
  });
  const buttons = new Map();
  for (const button of document.querySelectorAll("[aria-keyshortcuts]")) {
    for (const key of button.getAttribute("aria-keyshortcuts").split(" ")) buttons.set(key, button);
  }
  document.addEventListener("keydown", (event) => {
    const button = buttons.get(event.key.length === 1 ? event.key.toLowerCase() : event.key);
    if (!button || event.repeat || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    button.click();
  });
}
