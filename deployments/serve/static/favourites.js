"use strict";

/* Pictures that a person keeps, in this browser alone. */

const FAVOURITES = "cppcl-favourites";
const MOST_KEPT = 200;

function favourites() {
  try {
    const kept = JSON.parse(localStorage.getItem(FAVOURITES));
    return Array.isArray(kept) ? kept : [];
  } catch {
    return []; // no storage is allowed, or what is in it is not ours
  }
}

function sameFavourite(one, other) {
  return one.model === other.model && one.name === other.name;
}

function isFavourite(match) {
  return favourites().some((one) => sameFavourite(one, { model: model.name, name: match.name }));
}

function toggleFavourite(match) {
  const { name: path, title, row, key, thumbnail, original, label } = match;
  const one = { model: model.name, name: path, title, row, key, thumbnail, original, label };
  const kept = favourites();
  const others = kept.filter((other) => !sameFavourite(one, other));
  if (others.length === kept.length) others.unshift(one);
  try {
    localStorage.setItem(FAVOURITES, JSON.stringify(others.slice(0, MOST_KEPT)));
  } catch {
    fail("This browser keeps nothing for this page; allow it to store data.");
  }
  showFavourites();
  refreshCards();
}

function showFavourites() {
  // The row of a picture means something in its own gallery alone.
  const kept = favourites().filter((one) => one.model === model.name);
  byId("kept").hidden = kept.length === 0;
  byId("favourites").replaceChildren(
    ...kept.map((one) => {
      const current = one.key === model.key;
      const image = element("img", { src: one.thumbnail, alt: one.title, width: 256, height: 256 });
      const shown = element("button", { type: "button", title: one.title, disabled: !current }, image);
      shown.addEventListener("click", () => openLarge(one));
      const away = symbolButton("×", "away", () => toggleFavourite(one));
      describe(away, `No longer keep ${one.title}`);
      return element("li", {}, shown, element("span", { className: "title", textContent: one.title }), away);
    }),
  );
}
