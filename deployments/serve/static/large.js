"use strict";

/* One picture, large, with what is nearest to it. */

const N_NEIGHBOURS = 8;
let largeMatch = null; // what is shown
let pushed = false; // whether going back closes it

function openLarge(match) {
  const isStep = !byId("large").open;
  showLarge(match); // before it is open: what is disabled would lose the focus
  if (isStep) {
    byId("large").showModal();
    pushed = true;
  }
  remember(isStep);
}

function closeLarge() {
  if (!byId("large").open) return;
  largeMatch = null;
  byId("large").close();
}

async function showLarge(match) {
  largeMatch = match;
  const image = byId("large-image");
  image.src = match.thumbnail; // at hand, while the other is on its way
  image.alt = match.title;
  const whole = new Image();
  whole.addEventListener("load", () => {
    if (largeMatch === match) image.src = match.original;
  });
  whole.src = match.original;
  byId("large").scrollTop = 0;
  byId("large-title").textContent = match.title;
  const facts = [];
  if (match.label && match.label !== match.title) facts.push(["Class", match.label.replaceAll(/[-_]/g, " ")]);
  if (match.similarity !== undefined) {
    facts.push(["Similarity", `${match.similarity.toFixed(3)}, number ${match.rank}`]);
  }
  facts.push(["File", match.name]);
  byId("large-source").hidden = !model.licence;
  byId("large-licence").textContent = model.licence;
  byId("large-facts").replaceChildren(
    ...facts.flatMap(([term, text]) => [
      element("dt", { textContent: term }),
      element("dd", { textContent: text }),
    ]),
  );
  byId("large-open").href = match.original;
  refreshLarge();
  byId("neighbours").replaceChildren();
  try {
    const asked = { model: model.name, key: match.key, image: match.row, k: N_NEIGHBOURS };
    const response = await reach(`${root}/api/search`, posted(asked), () => largeMatch === match);
    if (!response.ok || largeMatch !== match) return;
    const { matches, key } = await response.json();
    byId("neighbours").replaceChildren(
      ...matches.map((near) => {
        const small = element("img", { src: near.thumbnail, alt: near.title, width: 256, height: 256 });
        const button = element("button", { type: "button", title: near.title }, small);
        const { rank, similarity, ...rest } = near; // they are of this picture, not of the query
        button.addEventListener("click", () => openLarge({ ...rest, key }));
        return element("li", {}, button);
      }),
    );
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
}

function refreshLarge() {
  if (largeMatch === null) return;
  const { row } = largeMatch;
  byId("large-like").setAttribute("aria-pressed", String(marks.liked.has(row)));
  byId("large-unlike").setAttribute("aria-pressed", String(marks.disliked.has(row)));
  const kept = isFavourite(largeMatch);
  byId("large-keep").setAttribute("aria-pressed", String(kept));
  byId("large-keep").textContent = kept ? "★ Kept" : "☆ Keep";
  const asked = drawing.isEmpty;
  for (const id of ["large-like", "large-unlike"]) byId(id).disabled = asked;
  const at = latest.findIndex((match) => match.row === row);
  byId("large-previous").disabled = at <= 0;
  byId("large-next").disabled = at < 0 || at === latest.length - 1;
}

function step(by) {
  const at = latest.findIndex((match) => match.row === largeMatch.row);
  const next = at < 0 ? undefined : latest[at + by];
  if (next) openLarge(next);
}

byId("large-previous").addEventListener("click", () => step(-1));
byId("large-next").addEventListener("click", () => step(1));
byId("large-like").addEventListener("click", () => mark("liked", largeMatch));
byId("large-unlike").addEventListener("click", () => mark("disliked", largeMatch));
byId("large-keep").addEventListener("click", () => {
  toggleFavourite(largeMatch);
  refreshLarge();
});
byId("large-by").addEventListener("click", () => {
  const { original, row, key } = largeMatch;
  pushed = false; // what follows is a step of its own
  closeLarge();
  take(original, { image: row, key });
});
byId("large-close").addEventListener("click", () => byId("large").close());
byId("large").addEventListener("click", (event) => {
  if (event.target === byId("large")) byId("large").close(); // beside it
});
document.addEventListener("keydown", (event) => {
  if (largeMatch === null) return;
  if (event.key === "ArrowLeft") step(-1);
  else if (event.key === "ArrowRight") step(1);
  else return;
  event.preventDefault();
});
byId("large").addEventListener("close", () => {
  byId("large-image").removeAttribute("src");
  if (largeMatch === null) return; // closed by going back, or by a new query
  largeMatch = null;
  if (pushed) {
    pushed = false;
    restoring = true; // the same query: nothing to search for
    history.back();
  } else remember(false);
});
