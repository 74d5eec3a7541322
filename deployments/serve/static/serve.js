"use strict";

const byId = (id) => document.getElementById(id);
const root = document.documentElement.dataset.root; // prefix of a reverse proxy
const PAUSE = 150; // ms after the last stroke
const N_EXAMPLES = 8;
const MOST_TRIES = 4;
const LARGEST_FILE = 6 * 2 ** 20;

let models = [];
let model = null;
let firstExample = 0;
let timer = null;
let last = 0; // number of the latest search; answers to others are not shown
let underWay = null;
let byKeyboard = false; // whether what was pressed goes away with the old results

const drawing = new Drawing(byId("canvas"), (finished) => {
  clearTimeout(timer);
  byId("hint").hidden = !drawing.isEmpty || drawing.current !== null;
  byId("undo").disabled = drawing.past.length === 0;
  byId("clear").disabled = drawing.isEmpty;
  const { strokes, base } = drawing.state;
  byId("photo-line").hidden = !base || !base.file || strokes.length > 0;
  if (finished) timer = setTimeout(search, PAUSE);
});

function say(text) {
  byId("status").textContent = text;
}

function fail(text) {
  byId("error").textContent = text;
}

function percent(share) {
  return `${Math.round(100 * share)} %`;
}

/* What to ask for, or null for nothing. */
function query() {
  const { strokes, base } = drawing.state;
  drawing.render(byId("seen"));
  if (drawing.isEmpty) return null;
  const asked = { model: model.name };
  if (base && !strokes.length) {
    if (base.file) return { ...asked, picture: base.file, photo: byId("photo").checked };
    // Rows mean something in their own gallery alone; elsewhere it is a picture.
    if (base.rows.key === model.key) return { ...asked, ...base.rows };
  }
  return { ...asked, picture: byId("seen").toDataURL("image/png") };
}

async function search() {
  clearTimeout(timer);
  if (underWay) underWay.abort();
  last += 1;
  const number = last;
  fail("");
  if (!model) return;
  const asked = query();
  if (asked === null) {
    byId("matches").replaceChildren();
    byId("results").setAttribute("aria-busy", "false");
    say("");
    return;
  }
  underWay = new AbortController();
  byId("results").setAttribute("aria-busy", "true");
  try {
    const found = await ask(asked, underWay.signal, () => number === last);
    if (found && number === last) await show(found);
  } catch (error) {
    if (error.name !== "AbortError" && number === last) {
      fail("The server does not answer. Is it running? Draw on to try again.");
    }
  } finally {
    if (number === last) byId("results").setAttribute("aria-busy", "false");
  }
}

/* Ask until there is an answer; a busy server is asked again. */
async function ask(asked, signal, isLatest) {
  for (let tried = 1; ; tried += 1) {
    const response = await fetch(`${root}/api/search`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json" },
      body: JSON.stringify(asked),
      signal,
    });
    const isJson = (response.headers.get("content-type") || "").startsWith("application/json");
    const found = isJson ? await response.json() : { error: await response.text() };
    if (response.ok) return found;
    if (response.status === 409) {
      await load(); // trained or indexed anew
      if (isLatest()) search();
      return null;
    }
    if (response.status !== 503 || tried === MOST_TRIES) {
      if (isLatest()) {
        byId("matches").replaceChildren();
        say("");
        fail(found.error);
      }
      return null;
    }
    const seconds = Number(response.headers.get("retry-after")) || 1;
    await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
    if (!isLatest()) return null;
  }
}

async function show(found) {
  if (found.key !== model.key) await load(); // trained or indexed anew
  const [first] = found.matches;
  const list = byId("matches");
  list.classList.toggle("far", found.close === false);
  list.replaceChildren(...found.matches.map((match) => card(match, found.key)));
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
  if (byKeyboard && !document.activeElement.closest("main")) byId("status").focus();
  byKeyboard = false;
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function card(match, key) {
  const score = match.similarity.toFixed(3);
  const image = element("img", {
    src: match.thumbnail,
    alt: `Number ${match.rank}: ${match.title}`,
    width: 256,
    height: 256,
  });
  const link = element(
    "a",
    { href: match.original, target: "_blank", rel: "noopener", title: `${match.name}: open the original` },
    image,
  );
  const like = element("button", { type: "button", className: "like", textContent: "More like this" });
  const caption = element(
    "div",
    { className: "caption" },
    element("span", { className: "label", textContent: match.title, title: match.title }),
    like,
    element("span", { className: "score", textContent: score, title: "similarity" }),
  );
  like.setAttribute("aria-label", `More like number ${match.rank}, ${match.title}`);
  like.addEventListener("click", () => {
    byKeyboard = true;
    take(match.original, { image: match.row, key });
  });
  return element("li", {}, link, caption);
}

/* Make a picture of the model's what is searched by. */
async function take(address, rows) {
  fail("");
  try {
    const response = await fetch(address);
    if (!response.ok) throw new Error(response.statusText);
    const picture = await createImageBitmap(await response.blob());
    drawing.set({ strokes: [], base: { picture, rows } });
    search();
  } catch (error) {
    fail("The picture cannot be had; search again.");
  }
}

/* Make a file what is searched by. */
async function open(file) {
  if (!file) return;
  fail("");
  if (file.size > LARGEST_FILE) {
    fail(`${file.name} is larger than ${LARGEST_FILE / 2 ** 20} MiB; reduce it.`);
    return;
  }
  const picture = await createImageBitmap(file).catch(() => null);
  if (picture === null) {
    fail(`${file.name || "What was pasted"} is no picture that this browser can show.`);
    return;
  }
  const reader = new FileReader();
  reader.addEventListener("load", () => {
    const content = reader.result.slice(reader.result.indexOf(",") + 1);
    byId("photo").checked = false;
    drawing.set({ strokes: [], base: { picture, file: content } });
    search();
  });
  reader.readAsDataURL(file);
}

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
  drawing.setLook(model.look);
  firstExample = 0;
  showExamples();
  byId("about-close").textContent = aboutClose(model.closeness);
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
  const response = await fetch(`${root}/api/models`, { headers: { Accept: "application/json" } });
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
byId("clear").addEventListener("click", () => drawing.clear());
byId("others").addEventListener("click", () => {
  firstExample = (firstExample + N_EXAMPLES) % model.examples.length;
  showExamples();
});
byId("file").addEventListener("change", (event) => {
  open(event.target.files[0]);
  event.target.value = "";
});
byId("photo").addEventListener("change", search);
byId("model").addEventListener("change", (event) => {
  choose(event.target.value);
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

const keys = { p: "pen", e: "eraser", u: "undo", Delete: "clear" };
document.addEventListener("keydown", (event) => {
  const undoing = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z";
  if (event.altKey || ((event.ctrlKey || event.metaKey) && !undoing)) return;
  if (event.target.closest("select, input")) return;
  if (event.target === byId("canvas") && !undoing) {
    const said = drawing.key(event);
    if (said !== null) {
      event.preventDefault();
      if (said) say(said);
      return;
    }
  }
  const id = undoing ? "undo" : keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!id || event.repeat || (event.shiftKey && !undoing)) return;
  event.preventDefault();
  byId(id).click();
});

load().catch(() => fail("The server does not answer. Is it running? Then load the page again."));
