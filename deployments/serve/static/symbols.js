"use strict";

/* Symbols of classes: a colour and a shape, told apart by people who do not see colours as most do. */

// Okabe and Ito; the first seven of them on white and on black.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#f0e442"];
// Corners of each shape, between -1 and 1; none for a disc.
const SHAPES = [
  [],
  [[-0.85, -0.85], [0.85, -0.85], [0.85, 0.85], [-0.85, 0.85]],
  [[0, -1.1], [1.05, 0.8], [-1.05, 0.8]],
  [[0, -1.2], [1.2, 0], [0, 1.2], [-1.2, 0]],
  [[0, 1.1], [1.05, -0.8], [-1.05, -0.8]],
  [[-0.4, -1.1], [0.4, -1.1], [0.4, -0.4], [1.1, -0.4], [1.1, 0.4], [0.4, 0.4], [0.4, 1.1], [-0.4, 1.1], [-0.4, 0.4], [-1.1, 0.4], [-1.1, -0.4], [-0.4, -0.4]],
  [[-1.1, -0.6], [1.1, -0.6], [1.1, 0.6], [-1.1, 0.6]],
];
// From the first round to the last; equally far apart for the eye (viridis).
const ROUNDS = ["#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#fde725"];
const QUIET = "#8c959f";

/* Symbol number k: all colours with a shape, then those with the next. */
function symbolOf(k) {
  return { colour: COLOURS[k % COLOURS.length], shape: Math.floor(k / COLOURS.length) % SHAPES.length };
}

function traceShape(context, shape, x, y, radius) {
  context.beginPath();
  const corners = SHAPES[shape];
  if (!corners.length) context.arc(x, y, radius, 0, 2 * Math.PI);
  else corners.forEach(([dx, dy]) => context.lineTo(x + radius * dx, y + radius * dy));
  context.closePath();
}

/* A filled symbol with an edge that shows on any ground. */
function paintSymbol(context, { colour, shape }, x, y, radius, edge) {
  traceShape(context, shape, x, y, radius);
  context.fillStyle = colour;
  context.fill();
  context.lineWidth = 1;
  context.strokeStyle = edge;
  context.stroke();
}

/* A small picture of a symbol, for a legend. */
function swatch(symbol) {
  const canvas = element("canvas", { width: 36, height: 36, className: "swatch" });
  canvas.setAttribute("aria-hidden", "true");
  paintSymbol(canvas.getContext("2d"), symbol, 18, 18, 11, "#57606a");
  return canvas;
}
