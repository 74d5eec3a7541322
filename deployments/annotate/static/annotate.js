"use strict";

const byId = (id) => document.getElementById(id);
const root = document.documentElement.dataset.root; // prefix of a reverse proxy

/* Asking: without this script each answer loads the page anew. */
function ask() {
  const form = byId("answer");
  const pictures = [byId("left"), byId("right")];
  let seen = null; // when both pictures could be seen
  let hidden = 0; // how long the page could not be seen since then
  let away = null;
  let failed = false; // a picture cannot be shown
  let busy = false;

  function startClock() {
    seen = null;
    failed = false;
    hidden = 0;
    away = document.hidden ? performance.now() : null;
    mark();
    const shown = form.elements.left.value + "\n" + form.elements.right.value;
    Promise.allSettled(pictures.map((picture) => picture.decode())).then((outcomes) => {
      if (shown !== form.elements.left.value + "\n" + form.elements.right.value) return;
      failed = outcomes.some((outcome) => outcome.status === "rejected");
      if (failed) {
        byId("error").textContent = "A picture cannot be shown. Load the page again, or skip.";
      } else {
        seen = performance.now();
        hidden = 0;
        if (document.hidden) away = seen;
      }
      mark();
    });
  }

  function mark() {
    form.setAttribute("aria-busy", String(busy || (seen === null && !failed)));
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) away = performance.now();
    else if (away !== null) {
      hidden += performance.now() - away;
      away = null;
    }
  });

  function number(value, digits) {
    return value === null ? "–" : value.toFixed(digits);
  }

  function show(state, spoken) {
    const { question, progress } = state;
    if (question === null) {
      location.reload();
      return;
    }
    for (const picture of pictures) {
      form.elements[picture.id].value = question[picture.id].id;
      picture.src = question[picture.id].address;
    }
    byId("label").textContent = question.label;
    byId("count").textContent = `${progress.answered} of ${progress.proposals}`;
    byId("done").value = progress.answered;
    byId("mine").textContent = progress.mine;
    byId("seconds").textContent = number(progress.seconds, 1) + (progress.seconds === null ? "" : " s");
    byId("alpha").textContent =
      number(progress.alpha, 2) + (progress.alpha === null ? "" : ` over ${progress.shared} pairs`);
    byId("take-back").disabled = progress.mine === 0;
    const extra = question.proposed ? "" : " Beyond the proposed pairs.";
    byId("status").textContent = `${spoken} Next: class ${question.label}. You gave ${progress.mine} answers.${extra}`;
    startClock();
  }

  async function goOn() {
    const who = new URLSearchParams(new FormData(byId("undo")));
    const response = await fetch(`${root}/ask?${who}`, { headers: { Accept: "application/json" } });
    if (response.ok) show(await response.json(), "");
  }

  async function send(address, fields, spoken) {
    if (busy) return;
    busy = true;
    mark();
    try {
      const response = await fetch(address, {
        method: "POST",
        headers: { Accept: "application/json" },
        body: fields,
      });
      const isJson = (response.headers.get("content-type") || "").startsWith("application/json");
      const found = isJson ? await response.json() : { error: await response.text() };
      if (response.ok) {
        byId("error").textContent = "";
        show(found, spoken);
      } else {
        byId("error").textContent = `Not saved: ${found.error}`;
        // Answered in another window meanwhile: the next pair is due.
        if (response.status === 409) await goOn();
      }
    } catch (error) {
      byId("error").textContent = "Not saved: the server does not answer. Is it running? Then try again.";
    } finally {
      busy = false;
      mark();
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const choice = event.submitter.value;
    if (seen === null && choice !== "skip") return; // nobody can have compared them yet
    let seconds = "";
    if (seen !== null) {
      const now = performance.now();
      const unseen = hidden + (away === null ? 0 : now - away);
      seconds = (Math.max(0, now - seen - unseen) / 1000).toFixed(2);
    }
    const fields = new URLSearchParams(new FormData(form));
    fields.set("seconds", seconds);
    fields.set("easier", choice);
    send(`${root}/answer`, fields, choice === "skip" ? "Skipped." : `Saved: ${choice === "a" ? "left" : "right"} is easier.`);
  });

  byId("undo").addEventListener("submit", (event) => {
    event.preventDefault();
    send(`${root}/undo`, new URLSearchParams(new FormData(event.target)), "Taken back.");
  });

  const keys = {
    ArrowLeft: form.querySelector("[value=a]"),
    ArrowRight: form.querySelector("[value=b]"),
    s: form.querySelector("[value=skip]"),
    u: byId("take-back"),
  };
  document.addEventListener("keydown", (event) => {
    const button = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!button || event.repeat || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    button.click();
  });

  startClock();
}

/* Importing. */
function take() {
  const input = byId("import");
  const report = byId("import-report");

  function paragraph(text) {
    const element = document.createElement("p");
    element.textContent = text;
    return element;
  }

  input.addEventListener("change", async () => {
    const file = input.files[0];
    if (!file) return;
    report.replaceChildren(paragraph(`Reading ${file.name} …`));
    try {
      const kind = file.name.toLowerCase().endsWith(".jsonl") ? "jsonl" : "csv";
      const response = await fetch(`${root}/import?kind=${kind}`, {
        method: "POST",
        headers: { Accept: "application/json" },
        body: await file.text(),
      });
      const found = await response.json();
      if (!response.ok) {
        report.replaceChildren(paragraph(`${file.name}: ${found.error}`));
        return;
      }
      const list = document.createElement("ul");
      for (const [number, problem] of found.problems) {
        const item = document.createElement("li");
        item.textContent = `line ${number}: ${problem}`;
        list.append(item);
      }
      report.replaceChildren(
        paragraph(`${file.name}: ${found.n_new} answers are new, ${found.n_known} were here, ${found.n_wrong} lines were left out${found.n_wrong > found.problems.length ? `, of which the first ${found.problems.length} are` : ""}.`),
        list,
      );
    } catch (error) {
      report.replaceChildren(paragraph(`${file.name}: the server does not answer.`));
    } finally {
      input.value = "";
    }
  });
}

if (byId("answer")) ask();
if (byId("import")) take();
