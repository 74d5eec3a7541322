"use strict";

/* Asking the server, which may be away, busy or slow. */

const SLOW = 1500; // ms after which it is said that an answer takes long
const MOST_TRIES = 4; // of a server that says that it is busy
const LONGEST_WAIT = 15; // s between tries of a server that is away

let awayTimer = null;
let tryNow = null;

function wait(seconds) {
  return new Promise((resolve) => {
    tryNow = resolve;
    awayTimer = setTimeout(resolve, 1000 * seconds);
  });
}

/* Say that the server is away, and when it is tried again. */
function sayAway(seconds) {
  const again = element("button", { type: "button", textContent: "Try now" });
  again.addEventListener("click", () => tryNow && tryNow());
  byId("error").replaceChildren(
    `No connection to the server. What is drawn is kept. Trying again in ${seconds} s. `,
    again,
  );
}

/* Fetch, again and again while nobody answers and the answer is still wanted. */
async function reach(address, options, isWanted) {
  for (let seconds = 1; ; seconds = Math.min(2 * seconds, LONGEST_WAIT)) {
    try {
      const response = await fetch(address, options);
      if (tryNow) {
        tryNow = null;
        fail("");
      }
      return response;
    } catch (error) {
      if (error.name === "AbortError" || !isWanted()) throw error;
      sayAway(seconds);
      await wait(seconds);
      clearTimeout(awayTimer);
      if (!isWanted()) throw new DOMException("not wanted any more", "AbortError");
    }
  }
}

window.addEventListener("online", () => tryNow && tryNow());

/* Do something, and say so if it takes long. */
async function noticingSlowness(work, isWanted) {
  const timer = setTimeout(() => {
    if (isWanted() && !byId("error").textContent) say("Still searching: the server is slow or busy.");
  }, SLOW);
  try {
    return await work();
  } finally {
    clearTimeout(timer);
  }
}
