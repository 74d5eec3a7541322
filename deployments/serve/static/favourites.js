"use strict";

/* Pictures that a person keeps, in this browser alone. */

const FAVOURITES = "cppcl-favourites";
const MOST_KEPT = 200;

function favourites() {
  try {
    const kept = JSON.parse(localStorage.getItem(FAVOURITES));
    const isOurs = (one) => one && ["model", "name", "title", "key"].every((part) => typeof one[part] === "string");
    return Array.isArray(kept) ? kept.filter(isOurs) : [];
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

/* A favourite, or its name alone where its gallery was replaced: its row means nothing any more. */
function favouriteButton(one) {
  if (one.key === model.key) {
    const image = element("img", { src: one.thumbnail, alt: one.title, width: 256, height: 256 });
    const shown = element("button", { type: "button", title: one.title }, image);
    shown.addEventListener("click", () => openLarge(one));
    return shown;
  }
  const gone = element("button", { type: "button", className: "gone", textContent: "replaced" });
  describe(gone, `${one.title}: its gallery was replaced`);
  gone.addEventListener("click", () =>
    fail(`${one.title} (${one.name}) is of a gallery that was replaced, so it cannot be opened. Remove it with ×, or search for it again.`),
  );
  return gone;
}

function forgetReplaced() {
  const kept = favourites().filter((one) => one.model !== model.name || one.key === model.key);
  localStorage.setItem(FAVOURITES, JSON.stringify(kept));
  showFavourites();
  refreshCards();
}

function showFavourites() {
  const kept = favourites().filter((one) => one.model === model.name);
  const n = kept.filter((one) => one.key !== model.key).length;
  byId("kept").hidden = kept.length === 0;
  byId("forget").hidden = n === 0;
  byId("forget").textContent = `Remove ${n} of a gallery that was replaced`;
  byId("favourites").replaceChildren(
    ...kept.map((one) => {
      const shown = favouriteButton(one);
      const away = symbolButton("×", "away", () => toggleFavourite(one));
      describe(away, `No longer keep ${one.title}`);
      return element("li", {}, shown, element("span", { className: "title", textContent: one.title }), away);
    }),
  );
}

byId("forget").addEventListener("click", forgetReplaced);
