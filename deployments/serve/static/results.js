"use strict";

/* The pictures that were found: cards that keep their place, or move to a new one. */

const SETTLING = 180; // ms in which a card moves
const still = window.matchMedia("(prefers-reduced-motion: reduce)");

/* A button that is a symbol with words for those who do not see it. */
function symbolButton(symbol, className, act) {
  const button = element("button", { type: "button", className, textContent: symbol });
  button.addEventListener("click", act);
  return button;
}

function describe(button, text) {
  button.setAttribute("aria-label", text);
  button.title = text;
}

function makeCard(id) {
  const card = element("li", {});
  card.dataset.id = id;
  const image = element("img", { width: 256, height: 256, decoding: "async" });
  const link = element("a", { className: "picture" }, image);
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // to a tab of its own
    event.preventDefault();
    openLarge(card.match);
  });
  const title = element("span", { className: "title" });
  const score = element("span", { className: "score", title: "similarity" });
  const like = symbolButton("+", "like", () => mark("liked", card.match));
  const unlike = symbolButton("−", "unlike", () => mark("disliked", card.match));
  const keep = symbolButton("☆", "keep", () => toggleFavourite(card.match));
  card.append(link, title, score, element("div", { className: "acts" }, like, unlike, keep));
  card.parts = { image, link, title, score, like, unlike, keep };
  return card;
}

function fillCard(card, match, isFar) {
  const { image, link, title, score, like, unlike, keep } = card.parts;
  card.match = match;
  if (image.getAttribute("src") !== match.thumbnail) image.src = match.thumbnail;
  image.alt = `Number ${match.rank}: ${match.title}`;
  link.href = match.original;
  link.title = `${match.name}: open it large`;
  title.textContent = match.title;
  title.title = match.title;
  score.textContent = match.similarity.toFixed(3);
  score.classList.toggle("far", isFar);
  const what = `number ${match.rank}, ${match.title}`;
  describe(like, `More like ${what}`);
  describe(unlike, `Not like ${what}`);
  like.setAttribute("aria-pressed", String(marks.liked.has(match.row)));
  unlike.setAttribute("aria-pressed", String(marks.disliked.has(match.row)));
  const kept = isFavourite(match);
  keep.textContent = kept ? "★" : "☆";
  keep.setAttribute("aria-pressed", String(kept));
  describe(keep, `Keep ${what}`);
}

/* Show matches: a picture that was there already stays as it is and moves to its place. */
function showMatches(matches, key, isFar) {
  const list = byId("matches");
  const old = new Map([...list.children].map((card) => [card.dataset.id, card]));
  const places = new Map([...old].map(([id, card]) => [id, card.getBoundingClientRect()]));
  const focused = list.contains(document.activeElement) ? document.activeElement : null;
  const cards = matches.map((match) => {
    const id = `${key}/${match.row}`;
    const card = old.get(id) || makeCard(id);
    fillCard(card, { ...match, key }, isFar);
    return card;
  });
  list.classList.toggle("far", isFar);
  // Nodes that are already in their places keep what they have: focus, hovering, a touch.
  const same = cards.length === list.children.length && cards.every((card, i) => card === list.children[i]);
  if (!same) list.replaceChildren(...cards);
  if (focused && !same) {
    if (focused.isConnected) focused.focus({ preventScroll: true });
    else byId("status").focus({ preventScroll: true });
  }
  if (same || still.matches) return;
  for (const card of cards) {
    const before = places.get(card.dataset.id);
    if (!before) continue;
    const now = card.getBoundingClientRect();
    const [dx, dy] = [before.left - now.left, before.top - now.top];
    if (!dx && !dy) continue;
    const frames = [{ transform: `translate(${dx}px, ${dy}px)` }, { transform: "none" }];
    card.animate(frames, { duration: SETTLING, easing: "ease-out" });
  }
}

/* What a query was moved by, and a way to take it back. */
function showMarks() {
  const chips = [];
  for (const [kind, sign, words] of [
    ["liked", "+", "more like"],
    ["disliked", "−", "not like"],
  ]) {
    for (const row of marks[kind]) {
      const image = element("img", { src: thumbnailOf(row), alt: "", width: 32, height: 32 });
      const chip = element("button", { type: "button", className: "chip" }, `${sign} `, image, " ×");
      describe(chip, `No longer ${words} ${titles.get(row) || "this picture"}`);
      chip.addEventListener("click", () => mark(kind, { row }));
      chips.push(chip);
    }
  }
  byId("marks").replaceChildren(...(chips.length ? ["The query is moved by: ", ...chips] : []));
}
