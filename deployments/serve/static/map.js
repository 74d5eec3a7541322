"use strict";

/* A zoomable map of all pictures of a gallery, and of sketches beside what they find. */

const NEAR = 18; // pixels within which a click means something
const LARGEST_ZOOM = 60;
const MOST_SHOWN = 250; // pictures that are shown as such, where no more are in view
const STEP = 60; // pixels of an arrow key
const N_MISTAKES = 24;

let map = null; // as the server gave it
let view = { scale: 1, x: 0, y: 0 }; // a place p is at scale * size * p + (x, y)
let symbols = new Map(); // by class
let highlighted = null;
let chosenPoint = null;
let frame = null;
let nMistakes = N_MISTAKES;
const plane = byId("plane");
const loaded = new Map(); // small pictures by address
const pointers = new Map();
const dark = window.matchMedia("(prefers-color-scheme: dark)");

async function json(address) {
  for (;;) {
    const response = await reach(`${root}${address}`, { headers: { Accept: "application/json" } }, () => true);
    const found = await response.json();
    if (response.ok) return found;
    if (response.status !== 503) throw new Error(found.error);
    say("The map is being laid out. This takes some seconds, once.");
    const seconds = Number(response.headers.get("retry-after")) || 1;
    await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
  }
}

async function load() {
  fail("");
  const { models } = await json("/api/models");
  const { key, licence } = models.find((one) => one.name === byId("model").value) || models[0];
  map = await json(`/api/map/${key}`);
  map.licence = licence;
  const paced = [...map.images.entered, ...map.sketches.entered].some((round) => round >= 0);
  byId("colouring").hidden = !paced;
  if (!paced) byId("colour").value = "label";
  highlighted = chosenPoint = null;
  byId("chosen").replaceChildren();
  const shown = visibleSketches();
  say(`${map.images.row.length} pictures, ${shown.length} sketches that the model did not learn from.`);
  nameSymbols();
  showMistakes();
  showAll();
}

function thumbnail(modality, row) {
  return `${root}/pictures/${map.key}/${modality}/${row}`;
}

/* Positions of the sketches that are shown. */
function visibleSketches() {
  if (!byId("show-sketches").checked) return [];
  const trained = byId("show-trained").checked;
  const wrong = byId("only-wrong").checked;
  return map.sketches.row
    .map((_, i) => i)
    .filter((i) => (trained || map.held_out[i]) && (!wrong || map.right[i] === false));
}

function rounds() {
  return Math.max(1, ...map.images.entered, ...map.sketches.entered);
}

function symbolFor(side, i) {
  if (byId("colour").value === "label") return symbols.get(side.label[i]);
  const round = side.entered[i];
  if (round < 1) return { colour: QUIET, shape: round === 0 ? 3 : 0 };
  const share = rounds() > 1 ? (round - 1) / (rounds() - 1) : 0;
  return { colour: ROUNDS[Math.round(share * (ROUNDS.length - 1))], shape: 0 };
}

/* Symbols in the order of how many pictures a class has, and a legend to choose from. */
function nameSymbols() {
  const counts = new Map();
  for (const label of [...map.images.label, ...map.sketches.label]) counts.set(label, 0);
  for (const label of map.images.label) counts.set(label, counts.get(label) + 1);
  const labels = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || a.localeCompare(b));
  symbols = new Map(labels.map((label, k) => [label, symbolOf(k)]));
  const byRound = byId("colour").value === "entered";
  byId("legend-head").textContent = byRound ? "Rounds of the training" : "Classes";
  byId("legend").replaceChildren(...(byRound ? legendOfRounds() : legendOfClasses(labels, counts)));
}

function legendOfClasses(labels, counts) {
  return labels.map((label) => {
    const words = ` ${(label || "without a class").replaceAll(/[-_]/g, " ")} (${counts.get(label)})`;
    const button = element("button", { type: "button" }, swatch(symbols.get(label)), words);
    button.setAttribute("aria-pressed", String(label === highlighted));
    button.addEventListener("click", () => {
      highlighted = highlighted === label ? null : label;
      nameSymbols();
      draw();
    });
    return element("li", {}, button);
  });
}

function legendOfRounds() {
  const all = [...map.images.entered, ...map.sketches.entered];
  const found = [...new Set(all)].sort((a, b) => a - b);
  return found.map((round) => {
    const words = round < 0 ? "not in the training" : round === 0 ? "never entered" : `round ${round}`;
    const i = map.images.entered.indexOf(round);
    const symbol = i >= 0 ? symbolFor(map.images, i) : symbolFor(map.sketches, map.sketches.entered.indexOf(round));
    const n = all.filter((one) => one === round).length;
    return element("li", {}, swatch(symbol), ` ${words} (${n})`);
  });
}

function size() {
  return Math.min(plane.clientWidth, plane.clientHeight);
}

function showAll() {
  const margin = 0.04 * size();
  view = { scale: 0.92, x: (plane.clientWidth - size()) / 2 + margin, y: (plane.clientHeight - size()) / 2 + margin };
  draw();
}

/* Zoom by a factor about a point of the canvas. */
function zoom(factor, x = plane.clientWidth / 2, y = plane.clientHeight / 2) {
  const scale = Math.min(LARGEST_ZOOM, Math.max(0.5, view.scale * factor));
  const by = scale / view.scale;
  view = { scale, x: x - by * (x - view.x), y: y - by * (y - view.y) };
  draw();
}

function move(dx, dy) {
  view = { ...view, x: view.x + dx, y: view.y + dy };
  draw();
}

function at(side, i) {
  const unit = view.scale * size();
  return [view.x + unit * side.x[i], view.y + unit * side.y[i]];
}

function inView([x, y], margin = 40) {
  return x > -margin && y > -margin && x < plane.clientWidth + margin && y < plane.clientHeight + margin;
}

function draw() {
  frame ??= requestAnimationFrame(() => {
    frame = null;
    if (map) paintMap();
  });
}

function smallPicture(address) {
  let image = loaded.get(address);
  if (!image) {
    image = new Image();
    image.addEventListener("load", draw);
    image.src = address;
    loaded.set(address, image);
  }
  return image.complete && image.naturalWidth ? image : null;
}

/* A square picture around a point; false while it is on its way. */
function paintPicture(context, address, x, y, side) {
  const image = smallPicture(address);
  if (!image) return false;
  const scale = side / Math.max(image.naturalWidth, image.naturalHeight);
  const [w, h] = [scale * image.naturalWidth, scale * image.naturalHeight];
  context.fillStyle = "#ffffff";
  context.fillRect(x - side / 2, y - side / 2, side, side);
  context.drawImage(image, x - w / 2, y - h / 2, w, h);
  return true;
}

function paintMap() {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [plane.clientWidth, plane.clientHeight];
  if (plane.width !== Math.round(width * ratio) || plane.height !== Math.round(height * ratio)) {
    plane.width = Math.round(width * ratio);
    plane.height = Math.round(height * ratio);
  }
  const context = plane.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = dark.matches ? "#16191d" : "#ffffff";
  context.fillRect(0, 0, width, height);
  const ink = dark.matches ? "#e6e9ec" : "#1f2328";
  const edge = dark.matches ? "#0d1117" : "#57606a";
  const faded = (side, i) => highlighted !== null && side.label[i] !== highlighted;
  const sketches = visibleSketches().filter((i) => inView(at(map.sketches, i)));
  const images = map.images.row.map((_, i) => i).filter((i) => inView(at(map.images, i)));
  for (const i of sketches) {
    const isWrong = map.right[i] === false;
    context.globalAlpha = faded(map.sketches, i) ? 0.1 : 0.8;
    context.strokeStyle = isWrong ? (dark.matches ? "#ff9492" : "#a40e26") : QUIET;
    context.lineWidth = isWrong ? 1.5 : 1;
    context.setLineDash(isWrong ? [5, 3] : []);
    context.beginPath();
    context.moveTo(...at(map.sketches, i));
    context.lineTo(...at(map.images, map.nearest[i]));
    context.stroke();
  }
  context.setLineDash([]);
  const asPictures = images.length + sketches.length <= MOST_SHOWN;
  const side = Math.min(72, Math.max(28, 8 * Math.sqrt(view.scale) + 12));
  for (const i of images) {
    const [x, y] = at(map.images, i);
    const symbol = symbolFor(map.images, i);
    context.globalAlpha = faded(map.images, i) ? 0.12 : 1;
    if (asPictures && paintPicture(context, thumbnail("image", map.images.row[i]), x, y, side)) {
      paintSymbol(context, symbol, x - side / 2, y - side / 2, 5, edge);
    } else paintSymbol(context, symbol, x, y, 5, edge);
  }
  for (const i of sketches) {
    const [x, y] = at(map.sketches, i);
    context.globalAlpha = faded(map.sketches, i) ? 0.12 : 1;
    const small = 0.7 * side;
    if (asPictures && paintPicture(context, thumbnail("sketch", map.sketches.row[i]), x, y, small)) {
      context.strokeStyle = QUIET;
      context.lineWidth = 1;
      context.strokeRect(x - small / 2, y - small / 2, small, small);
    } else {
      const { colour, shape } = symbolFor(map.sketches, i);
      traceShape(context, shape, x, y, 4);
      context.lineWidth = 1.75;
      context.strokeStyle = colour;
      context.stroke();
    }
    if (map.right[i] === false) {
      context.lineWidth = asPictures ? 2 : 1.5;
      context.strokeStyle = dark.matches && !asPictures ? "#ff9492" : "#a40e26"; // on white paper
      context.beginPath();
      for (const sign of [1, -1]) {
        context.moveTo(x - 6, y - 6 * sign);
        context.lineTo(x + 6, y + 6 * sign);
      }
      context.stroke();
    }
  }
  context.globalAlpha = 1;
  if (chosenPoint) {
    const [x, y] = at(map[chosenPoint.side], chosenPoint.i);
    context.strokeStyle = ink;
    context.lineWidth = 2.5;
    context.beginPath();
    context.arc(x, y, asPictures ? side / 2 + 6 : 11, 0, 2 * Math.PI);
    context.stroke();
  }
}

/* What is nearest to a point of the canvas, within reach. */
function pointNear(x, y) {
  let [best, found] = [NEAR, null];
  const look = (side, i) => {
    const [px, py] = at(map[side], i);
    const far = Math.hypot(px - x, py - y);
    if (far < best) [best, found] = [far, { side, i }];
  };
  map.images.row.forEach((_, i) => look("images", i));
  for (const i of visibleSketches()) look("sketches", i);
  return found;
}

function figure(modality, row, words) {
  const image = element("img", { src: thumbnail(modality, row), alt: "", width: 256, height: 256 });
  return element("figure", {}, image, element("figcaption", {}, words));
}

/* Say what a point is. */
function choosePoint(point) {
  chosenPoint = point;
  draw();
  if (!point) {
    byId("chosen").replaceChildren();
    return;
  }
  const side = map[point.side];
  const { i } = point;
  const parts = [];
  if (point.side === "sketches") {
    const near = map.nearest[i];
    parts.push(
      figure("sketch", side.row[i], `Sketch: ${side.title[i]}`),
      figure("image", map.images.row[near], `Its nearest picture: ${map.images.title[near]}`),
    );
    const verdict = { true: "Right.", false: "Wrong.", null: "Nothing here is right for it." }[map.right[i]];
    const learned = map.held_out[i] ? "The model did not learn from this sketch." : "The model learned from this sketch.";
    parts.push(element("p", { textContent: `${verdict} ${learned}` }));
  } else parts.push(figure("image", side.row[i], side.title[i]));
  const facts = [side.label[i].replaceAll(/[-_]/g, " "), side.name[i]];
  if (side.entered[i] >= 0) {
    facts.push(side.entered[i] ? `entered the training in round ${side.entered[i]}` : "never entered the training");
  }
  parts.push(element("p", { className: "note", textContent: facts.filter(Boolean).join(" · ") }));
  const row = point.side === "images" ? side.row[i] : map.images.row[map.nearest[i]];
  const query = new URLSearchParams({ image: row, key: map.key.slice(0, 12), model: byId("model").value });
  parts.push(element("p", {}, element("a", { href: `${root}/#${query}`, textContent: "Search by this picture" })));
  byId("chosen").replaceChildren(...parts);
}

/* The sketches whose nearest picture is wrong, of those that the model did not learn from. */
function showMistakes() {
  const asked = map.sketches.row.map((_, i) => i).filter((i) => map.held_out[i] && map.right[i] !== null);
  const wrong = asked.filter((i) => map.right[i] === false);
  const labels = [...new Set(wrong.map((i) => map.sketches.label[i]))].sort();
  const select = byId("mistaken");
  const chosen = labels.includes(select.value) ? select.value : "";
  const words = (label) => label.replaceAll(/[-_]/g, " ");
  select.replaceChildren(
    element("option", { value: "", textContent: `all (${wrong.length})` }),
    ...labels.map((label) => {
      const n = wrong.filter((i) => map.sketches.label[i] === label).length;
      return element("option", { value: label, textContent: `${words(label)} (${n})` });
    }),
  );
  select.value = chosen;
  byId("mistakes-filter").hidden = labels.length < 2;
  byId("mistakes-head").textContent = asked.length
    ? `Mistakes: the nearest picture is wrong for ${wrong.length} of ${asked.length} sketches`
    : "Nothing says which pictures are right";
  const listed = wrong.filter((i) => !chosen || map.sketches.label[i] === chosen);
  byId("mistakes").replaceChildren(
    ...listed.slice(0, nMistakes).map((i) => {
      const near = map.nearest[i];
      const sketch = element("img", { src: thumbnail("sketch", map.sketches.row[i]), alt: "", loading: "lazy", width: 256, height: 256 });
      const image = element("img", { src: thumbnail("image", map.images.row[near]), alt: "", loading: "lazy", width: 256, height: 256 });
      const text = `${map.sketches.title[i]} → ${map.images.title[near]}`;
      const button = element("button", { type: "button" }, sketch, image, element("span", { textContent: text }));
      button.addEventListener("click", () => goTo({ side: "sketches", i }));
      return element("li", {}, button);
    }),
  );
  byId("more-mistakes").hidden = listed.length <= nMistakes;
}

/* Bring a point into the middle, near enough to be seen. */
function goTo(point) {
  byId("show-sketches").checked = true;
  const unit = Math.max(view.scale, 8) * size();
  view = {
    scale: Math.max(view.scale, 8),
    x: plane.clientWidth / 2 - unit * map[point.side].x[point.i],
    y: plane.clientHeight / 2 - unit * map[point.side].y[point.i],
  };
  choosePoint(point);
  plane.scrollIntoView({ block: "nearest" });
}

plane.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
}, { passive: false });
plane.addEventListener("pointerdown", (event) => {
  plane.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY, moved: 0 });
});
plane.addEventListener("pointermove", (event) => {
  const before = pointers.get(event.pointerId);
  if (!before) return;
  const [dx, dy] = [event.offsetX - before.x, event.offsetY - before.y];
  const moved = before.moved + Math.hypot(dx, dy);
  if (pointers.size === 2) {
    const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    const far = Math.hypot(before.x - other.x, before.y - other.y) || 1;
    zoom(Math.hypot(event.offsetX - other.x, event.offsetY - other.y) / far, other.x, other.y);
  } else move(dx, dy);
  pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY, moved });
});
for (const kind of ["pointerup", "pointercancel"]) {
  plane.addEventListener(kind, (event) => {
    const before = pointers.get(event.pointerId);
    pointers.delete(event.pointerId);
    if (map && kind === "pointerup" && before && before.moved < 5) choosePoint(pointNear(event.offsetX, event.offsetY));
  });
}
plane.addEventListener("keydown", (event) => {
  const moves = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
  if (event.ctrlKey || event.metaKey || event.altKey || !map) return;
  if (event.key in moves) move(...moves[event.key]);
  else if (event.key === "+" || event.key === "=") zoom(1.4);
  else if (event.key === "-") zoom(1 / 1.4);
  else if (event.key === "0") showAll();
  else if (event.key === "Enter") choosePoint(pointNear(plane.clientWidth / 2, plane.clientHeight / 2));
  else return;
  event.preventDefault();
});
byId("closer").addEventListener("click", () => zoom(1.6));
byId("farther").addEventListener("click", () => zoom(1 / 1.6));
byId("whole").addEventListener("click", showAll);
for (const id of ["show-sketches", "show-trained", "only-wrong"]) byId(id).addEventListener("change", draw);
byId("colour").addEventListener("change", () => {
  highlighted = null;
  nameSymbols();
  draw();
});
byId("mistaken").addEventListener("change", () => {
  nMistakes = N_MISTAKES;
  showMistakes();
});
byId("more-mistakes").addEventListener("click", () => {
  nMistakes += N_MISTAKES;
  showMistakes();
});
function start() {
  load().catch((error) => fail(`There is no map: ${error.message}`));
}
byId("model").addEventListener("change", () => {
  history.replaceState(null, "", `#${new URLSearchParams({ model: byId("model").value })}`);
  start();
});
dark.addEventListener("change", draw);
new ResizeObserver(draw).observe(plane);

const named = new URLSearchParams(location.hash.slice(1)).get("model");
if ([...byId("model").options].some((option) => option.value === named)) byId("model").value = named;
start();
