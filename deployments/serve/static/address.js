"use strict";

/* A query as the part of an address behind '#', which no server gets to see. */

const STEPS = 4095; // a coordinate takes 12 bits: two characters of 6
const SIMPLE = 0.002; // points of a stroke that are nearer to its line are left out
const LONGEST = 40000; // characters of strokes: 10,000 points
const MOST_MARKS = 50; // of a kind, as the server takes them
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Points that a stroke needs (Douglas and Peucker). */
function simplified(points) {
  if (points.length < 3) return points;
  const [first, last] = [points[0], points.at(-1)];
  let [farthest, at] = [0, 0];
  for (let i = 1; i < points.length - 1; i += 1) {
    const far = distanceFromWay(points[i], first, last);
    if (far > farthest) [farthest, at] = [far, i];
  }
  if (farthest <= SIMPLE) return [first, last];
  return [...simplified(points.slice(0, at + 1)).slice(0, -1), ...simplified(points.slice(at))];
}

function digits(value) {
  const step = Math.round(Math.min(1, Math.max(0, value)) * STEPS);
  return LETTERS[step >> 6] + LETTERS[step & 63];
}

/* Strokes as text: four characters a point, '.' between strokes. Pressure is not kept. */
function encodeStrokes(strokes, height) {
  return strokes
    .map((stroke) => simplified(stroke).map(({ x, y }) => digits(x) + digits(y / height)).join(""))
    .join(".");
}

/* Inverse of the above; null where the text is none, or longer than anyone draws. */
function decodeStrokes(text, height) {
  if (text.length > LONGEST || !/^[\w.-]*$/.test(text)) return null;
  const value = (pair) => (64 * LETTERS.indexOf(pair[0]) + LETTERS.indexOf(pair[1])) / STEPS;
  return text
    .split(".")
    .filter((part) => part && part.length % 4 === 0)
    .map((part) =>
      densified(
        part.match(/..../g).map((point) => ({
          x: value(point.slice(0, 2)),
          y: value(point.slice(2)) * height,
          p: 1,
        })),
      ),
    );
}

/* What is searched by, as text behind '#'; `upload` is the number of a picture in this tab. */
function encodeQuery({ model, key, state, marks, words, shown, upload }, height) {
  const { strokes, base } = state;
  const parts = new URLSearchParams();
  if (strokes.length) parts.set("s", encodeStrokes(strokes, height));
  if (base && base.rows) {
    for (const kind of ["example", "image"]) if (kind in base.rows) parts.set(kind, base.rows[kind]);
    parts.set("key", base.rows.key.slice(0, 12));
  } else if (base) parts.set("upload", upload);
  for (const [kind, rows] of Object.entries(marks)) if (rows.size) parts.set(kind, [...rows].join("."));
  if (words) parts.set("words", words);
  if (shown !== null) parts.set("show", shown);
  if (![...parts].length) return "";
  if (!parts.has("key")) parts.set("key", key.slice(0, 12));
  parts.set("model", model);
  return `#${parts}`;
}

/* Inverse: what an address says; rows are numbers. */
function decodeQuery(hash, height) {
  const parts = new URLSearchParams(hash.slice(1));
  const number = (name) => (/^\d{1,9}$/.test(parts.get(name) || "") ? Number(parts.get(name)) : null);
  const several = (name) =>
    new Set((parts.get(name) || "").split(".").filter((row) => /^\d{1,9}$/.test(row)).slice(0, MOST_MARKS).map(Number));
  const liked = several("liked");
  const disliked = new Set([...several("disliked")].filter((row) => !liked.has(row)));
  return {
    model: parts.get("model"),
    key: parts.get("key"),
    strokes: decodeStrokes(parts.get("s") || "", height),
    example: number("example"),
    image: number("image"),
    upload: number("upload"),
    words: (parts.get("words") || "").slice(0, 200).replace(/[\ud800-\udbff]$/, ""), // no half of a letter
    marks: { liked, disliked },
    shown: number("show"),
  };
}
