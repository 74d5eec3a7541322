"use strict";

/* What every script of these pages uses. */

const byId = (id) => document.getElementById(id);
const root = document.documentElement.dataset.root; // prefix of a reverse proxy

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function say(text) {
  byId("status").textContent = text;
}

function fail(text) {
  byId("error").textContent = text;
}
