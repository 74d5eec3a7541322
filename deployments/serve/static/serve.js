"use strict";

const PAUSE = 30; // ms after a stroke in which another one may begin
const LIVE = 350; // ms of a stroke after which what there is of it is searched by
const N_EXAMPLES = 8;

let models = [];
let model = null;
let firstExample = 0;
let timer = null;
let liveTimer = null;
let last = 0; // number of the latest search; answers to others are not shown
let underWay = null;
let fetching = 0; // pictures that are on their way to be searched by
let latest = []; // matches that are shown
let answered = null; // what they answer: the strokes, and all else that is asked
let marks = { liked: new Set(), disliked: new Set() };
let markedBase = null; // what the marks are about
let lastKind = "[]"; // of query: another one is a step to go back from
let restoring = false;
const titles = new Map(); // by row of the model's gallery
const uploads = new Map(); // by number: they are in no address

const drawing = new Drawing(byId("canvas"), (finished) => {
  clearTimeout(timer);
  timer = null;
  const { strokes, base } = drawing.state;
  if (finished && (drawing.isEmpty || base !== markedBase)) {
    marks = { liked: new Set(), disliked: new Set() };
    markedBase = base;
    showMarks();
  }
  byId("hint").hidden = !drawing.isEmpty || drawing.current !== null;
  byId("undo").disabled = drawing.past.length === 0;
  byId("redo").disabled = drawing.future.length === 0;
  byId("clear").disabled = drawing.isEmpty;
  byId("link").disabled = drawing.isEmpty || Boolean(base && base.file);
  byId("photo-line").hidden = !base || !base.file || strokes.length > 0;
  if (finished) timer = setTimeout(search, PAUSE);
  else if (drawing.isActive && liveTimer === null && underWay === null) {
    liveTimer = setTimeout(() => {
      liveTimer = null;
      if (drawing.isActive && underWay === null) search({ isLive: true });
    }, LIVE);
  }
  settle();
});

/* Say whether more is to come. */
function settle() {
  const isBusy = drawing.isActive || timer !== null || underWay !== null || fetching > 0;
  byId("results").setAttribute("aria-busy", String(isBusy));
}

function percent(share) {
  return `${Math.round(100 * share)} %`;
}

function thumbnailOf(row) {
  return `${root}/pictures/${model.key}/image/${row}`;
}

function words() {
  return byId("words").value.trim();
}

/* What the drawing is now, to tell whether it grows. */
function drawn() {
  const { strokes, base } = drawing.state;
  const rows = Object.values(marks).map((each) => [...each]);
  const rest = JSON.stringify([rows, model.name, words()]);
  return { strokes, base, rest };
}

/* True if the drawing that was answered last is how this one began: pictures keep their places. */
function hasGrown() {
  const { strokes, base, rest } = drawn();
  return (
    answered !== null &&
    answered.base === base &&
    answered.rest === rest &&
    answered.strokes.every((stroke, i) => stroke === strokes[i])
  );
}

/* What to ask for, or null for nothing. */
function query() {
  const { strokes, base } = drawing.state;
  drawing.render(byId("seen"));
  if (drawing.isEmpty && !drawing.current) return null;
  const asked = { model: model.name };
  const text = words();
  if (text) asked.text = text;
  for (const [kind, rows] of Object.entries(marks)) {
    if (rows.size) Object.assign(asked, { [kind]: [...rows], key: model.key });
  }
  if (base && !strokes.length && !drawing.current) {
    if (base.file) return { ...asked, picture: base.file, photo: byId("photo").checked };
    // Rows mean something in their own gallery alone; elsewhere it is a picture.
    if (base.rows.key === model.key) return { ...asked, ...base.rows };
  }
  const shown = hasGrown() ? latest.map(({ row }) => row) : [];
  return { ...asked, shown, picture: byId("seen").toDataURL("image/png") };
}

/* Keep the query in the address, as a step to go back from or in place of the last one. */
function remember(isStep) {
  const { state, height } = drawing;
  const { name, key } = model;
  const upload = state.base && state.base.upload;
  const shown = largeMatch && largeMatch.row;
  const hash = encodeQuery({ model: name, key, state, marks, words: words(), shown, upload }, height);
  if (hash === location.hash) return;
  history[isStep ? "pushState" : "replaceState"](null, "", hash || location.pathname + location.search);
}

function kindOfQuery() {
  const { strokes, base } = drawing.state;
  const of = base && (base.rows || base.upload);
  const rows = Object.values(marks).map((each) => [...each]);
  return JSON.stringify([of, strokes.length > 0, rows, words() !== "", model.name]);
}

function rememberQuery() {
  const kind = kindOfQuery();
  remember(kind !== lastKind && largeMatch === null);
  lastKind = kind;
}

function posted(asked, signal) {
  return {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: JSON.stringify(asked),
    signal,
  };
}

async function search({ isLive = false } = {}) {
  clearTimeout(timer);
  clearTimeout(liveTimer);
  timer = liveTimer = null;
  if (underWay) underWay.abort();
  underWay = null;
  last += 1;
  const number = last;
  const isLatest = () => number === last;
  if (!isLive) fail("");
  const asked = model && query();
  const asking = model && drawn();
  if (model && !isLive) rememberQuery();
  if (!asked) {
    showNothing();
    settle();
    return;
  }
  underWay = new AbortController();
  const { signal } = underWay;
  settle();
  try {
    const work = () => ask(asked, signal, isLatest, isLive);
    const found = await (isLive ? work() : noticingSlowness(work, isLatest));
    if (found && isLatest()) {
      answered = asking;
      await show(found, isLive);
    }
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  } finally {
    if (isLatest()) underWay = null;
    settle();
  }
}

/* Ask until there is an answer; a busy server is asked again, except for half a stroke. */
async function ask(asked, signal, isLatest, isLive) {
  for (let tried = 1; ; tried += 1) {
    const response = await reach(`${root}/api/search`, posted(asked, signal), isLatest);
    const isJson = (response.headers.get("content-type") || "").startsWith("application/json");
    const found = isJson ? await response.json() : { error: await response.text() };
    if (response.ok) return found;
    if (!isLatest() || isLive) return null;
    if (response.status === 409) {
      await load(); // trained or indexed anew: rows of before mean nothing
      marks = { liked: new Set(), disliked: new Set() };
      showMarks();
      if (isLatest()) search();
      return null;
    }
    if (response.status !== 503 || tried === MOST_TRIES) {
      showNothing();
      byId("empty").hidden = true;
      fail(found.error);
      return null;
    }
    const seconds = Number(response.headers.get("retry-after")) || 1;
    await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
    if (!isLatest()) return null;
  }
}

function showNothing() {
  latest = [];
  byId("matches").replaceChildren();
  byId("empty").hidden = false;
  say(words() ? "Words alone find nothing: draw something, or begin with an example." : "");
}

async function show(found, isLive) {
  if (found.key !== model.key) await load(); // trained or indexed anew
  const [first] = found.matches;
  latest = found.matches.map((match) => ({ ...match, key: found.key }));
  for (const { row, title } of latest) titles.set(row, title);
  byId("empty").hidden = true;
  showMatches(found.matches, found.key, found.close === false);
  refreshLarge();
  if (isLive) return; // nothing is said until the pen is up
  if (!first) say(found.reason);
  else if (found.close === false) {
    const { right_kept, n_unknown } = model.closeness;
    const usual =
      right_kept === null
        ? `of ${n_unknown} sketches that the model did not learn from, 99 % find ${found.threshold.toFixed(3)} or more here`
        : `right answers have ${found.threshold.toFixed(3)} or more in ${percent(right_kept)} of cases`;
    say(
      `Nothing close. The nearest of ${model.n_pictures} pictures has a similarity of ` +
        `${first.similarity.toFixed(3)}; ${usual}. The nearest all the same:`,
    );
  } else {
    const n = found.matches.length;
    say(`${n} nearest pictures. The first: ${first.title}, similarity ${first.similarity.toFixed(3)}.`);
  }
}

function refreshCards() {
  for (const card of byId("matches").children) {
    fillCard(card, card.match, byId("matches").classList.contains("far"));
  }
}

/* Move the query towards a picture or away from it, or no longer. */
function mark(kind, { row, title }) {
  const other = kind === "liked" ? "disliked" : "liked";
  if (title) titles.set(row, title);
  if (!marks[kind].delete(row)) marks[kind].add(row);
  marks[other].delete(row);
  showMarks();
  refreshCards();
  refreshLarge();
  search();
}

/* A picture of the model's, as what is searched by. */
async function baseOf(address, rows) {
  fetching += 1;
  settle();
  try {
    const response = await reach(address, {}, () => true);
    if (!response.ok) throw new Error(response.statusText);
    return { picture: await createImageBitmap(await response.blob()), rows };
  } finally {
    fetching -= 1;
    settle();
  }
}

/* Make a picture of the model's what is searched by. */
async function take(address, rows) {
  fail("");
  try {
    drawing.set({ strokes: [], base: await baseOf(address, rows) });
    search();
  } catch (error) {
    fail("The picture is not there any more; search again.");
  }
}

/* Make a file what is searched by. */
async function open(file, isPhoto = false) {
  if (!file) return;
  fail("");
  const picture = await pictureOf(file);
  if (picture === null) {
    const what = file.name || "What was pasted";
    fail(`${what} is no picture that this browser can show. Save it as PNG or JPEG.`);
    return;
  }
  byId("photo").checked = isPhoto;
  const upload = uploads.size + 1;
  const base = { picture, file: await contentOf(file, picture), upload };
  uploads.set(upload, base);
  drawing.set({ strokes: [], base });
  search();
}

/* Search by what an address says. */
async function restore() {
  closeLarge();
  const { model: named } = decodeQuery(location.hash, 1);
  if (named && named !== model.name && models.some((one) => one.name === named)) choose(named);
  const asked = decodeQuery(location.hash, drawing.height);
  const { key } = model;
  let { shown } = asked;
  let problem = "";
  let base = null;
  if (asked.strokes === null) {
    problem = "The drawing in this address is too long, or cannot be read. Draw it again.";
    asked.strokes = [];
  }
  if (asked.key && !key.startsWith(asked.key)) {
    // Strokes mean the same to any model; rows do not.
    if (asked.image !== null || asked.example !== null || asked.marks.liked.size || asked.marks.disliked.size) {
      problem = "The pictures that this address names were replaced since it was made.";
    }
    Object.assign(asked, { image: null, example: null });
    asked.marks = { liked: new Set(), disliked: new Set() };
    shown = null;
  }
  try {
    if (asked.image !== null) {
      base = await baseOf(`${root}/originals/${key}/image/${asked.image}`, { image: asked.image, key });
    } else if (asked.example !== null) {
      base = await baseOf(`${root}/originals/${key}/sketch/${asked.example}`, { example: asked.example, key });
    } else if (asked.upload !== null) {
      base = uploads.get(asked.upload) || null;
      if (base === null) problem = "An uploaded picture is in no address; upload it again.";
    }
  } catch (error) {
    problem = "The picture that this address names is not there.";
  }
  markedBase = base;
  marks = asked.marks;
  byId("words").value = asked.words;
  drawing.set({ strokes: asked.strokes, base });
  lastKind = kindOfQuery();
  showMarks();
  await search();
  if (problem) fail(problem);
  const match = latest.find((one) => one.row === shown);
  if (match) {
    showLarge(match);
    byId("large").showModal();
    pushed = false;
    remember(false);
  }
}

window.addEventListener("popstate", () => {
  if (restoring) {
    // A picture was closed; the query may have moved meanwhile.
    restoring = false;
    remember(false);
  } else restore();
});

/* What close means for a model, in words. */
function aboutClose({ threshold, right_kept, wrong_refused, n_wrong, n_unknown }) {
  if (threshold === null) {
    return "This model has too few sketches that it did not learn from to tell from which similarity a picture is close.";
  }
  const close = `Close is a similarity of ${threshold.toFixed(3)} or more: of `;
  if (right_kept === null) {
    return `${close}${n_unknown} sketches that the model did not learn from, 99 % find a picture here that is as close. Nothing says which pictures are right.`;
  }
  const right = `${close}${n_wrong} sketches that the model did not learn from, ${percent(right_kept)} of the right answers reach it`;
  return wrong_refused === null
    ? `${right}.`
    : `${right}, and ${percent(wrong_refused)} stay below it when the right pictures are taken away.`;
}

function choose(name) {
  model = models.find((one) => one.name === name) || models[0];
  byId("model").value = model.name;
  byId("map-link").href = `${root}/map#${new URLSearchParams({ model: model.name })}`;
  drawing.setLook(model.look);
  titles.clear();
  firstExample = 0;
  showExamples();
  showFavourites();
  byId("about-close").textContent = aboutClose(model.closeness);
  byId("about-words").textContent = model.takes_words
    ? "They are added to the drawing."
    : "Only pictures with them in their names are shown: this model knows no words.";
}

function showExamples() {
  const { examples, key } = model;
  const n = Math.min(N_EXAMPLES, examples.length);
  const shown = Array.from({ length: n }, (_, i) => examples[(firstExample + i) % examples.length]);
  byId("examples").replaceChildren(
    ...shown.map((example) => {
      const image = element("img", { src: example.thumbnail, alt: `Sketch: ${example.title}`, width: 256, height: 256 });
      const button = element("button", { type: "button", title: example.title }, image);
      button.addEventListener("click", () => take(example.original, { example: example.row, key }));
      return element("li", {}, button);
    }),
  );
  byId("examples-head").hidden = n === 0;
  byId("others").hidden = examples.length <= N_EXAMPLES;
}

async function load() {
  const options = { headers: { Accept: "application/json" } };
  const response = await reach(`${root}/api/models`, options, () => true);
  if (!response.ok) throw new Error(response.statusText);
  ({ models } = await response.json());
  choose(model ? model.name : byId("model").value);
}

function setTool(tool) {
  drawing.tool = tool;
  for (const name of ["pen", "eraser"]) byId(name).setAttribute("aria-pressed", String(name === tool));
}

byId("pen").addEventListener("click", () => setTool("pen"));
byId("eraser").addEventListener("click", () => setTool("eraser"));
byId("undo").addEventListener("click", () => drawing.undo());
byId("redo").addEventListener("click", () => drawing.redo());
byId("clear").addEventListener("click", () => drawing.clear());
byId("link").addEventListener("click", async () => {
  remember(false);
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link to this search is copied.");
  } catch {
    say("Copy the address of this page: it holds this search.");
  }
});
byId("others").addEventListener("click", () => {
  firstExample = (firstExample + N_EXAMPLES) % model.examples.length;
  showExamples();
});
for (const id of ["file", "camera"]) {
  byId(id).addEventListener("change", (event) => {
    open(event.target.files[0], id === "camera");
    event.target.value = "";
  });
}
byId("photo").addEventListener("change", () => search());
byId("words").addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(search, 2 * PAUSE);
  settle();
});
byId("model").addEventListener("change", (event) => {
  choose(event.target.value);
  marks = { liked: new Set(), disliked: new Set() };
  showMarks();
  search();
});

document.addEventListener("paste", (event) => {
  const file = [...event.clipboardData.files].find((one) => one.type.startsWith("image/"));
  if (!file) return;
  event.preventDefault();
  open(file);
});
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dropping");
});
document.addEventListener("dragleave", () => document.body.classList.remove("dropping"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  open(event.dataTransfer.files[0]);
});

const keys = { p: "pen", e: "eraser", u: "undo", r: "redo", Delete: "clear" };

/* The button that a key stands for, if any. */
function buttonOf(event) {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (event.altKey) return undefined;
  if (event.ctrlKey || event.metaKey) {
    if (key === "z") return event.shiftKey ? "redo" : "undo";
    return key === "y" && !event.shiftKey ? "redo" : undefined;
  }
  return event.shiftKey ? undefined : keys[key];
}

document.addEventListener("keydown", (event) => {
  if (largeMatch !== null || event.target.closest("select, input")) return;
  const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
  if (event.target === byId("canvas") && isPlain) {
    const said = drawing.key(event);
    if (said !== null) {
      event.preventDefault();
      if (said) say(said);
      return;
    }
  }
  const id = buttonOf(event);
  if (!id) return;
  event.preventDefault();
  if (!event.repeat || id === "undo" || id === "redo") byId(id).click();
});

load()
  .then(() => (location.hash ? restore() : null))
  .catch(() => fail("The server does not know what it serves; its log says why."));
