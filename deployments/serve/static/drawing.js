"use strict";

/* A drawing of strokes over an optional picture. Lengths are shares of the width of the paper. */

const ERASER = 0.025;
const CLOSEST = 0.01; // points along a stroke are at most so far apart
const LARGEST_SCALE = 4; // of a drawing that is enlarged before it is sent

function distance(a, b) {
  return Math.hypot(a.x - b.x, a.y - b.y);
}

/* A stroke with points so close that an eraser can part it anywhere. */
function densified(points) {
  const dense = points.slice(0, 1);
  for (let i = 1; i < points.length; i += 1) {
    const a = points[i - 1];
    const b = points[i];
    const n = Math.max(1, Math.ceil(distance(a, b) / CLOSEST));
    for (let k = 1; k <= n; k += 1) {
      const t = k / n;
      dense.push({ x: a.x + t * (b.x - a.x), y: a.y + t * (b.y - a.y), p: a.p + t * (b.p - a.p) });
    }
  }
  return dense;
}

/* Distance of a point from the way between two others. */
function distanceFromWay(point, a, b) {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const squared = dx * dx + dy * dy;
  const t = squared > 0 ? ((point.x - a.x) * dx + (point.y - a.y) * dy) / squared : 0;
  const along = Math.min(1, Math.max(0, t));
  return Math.hypot(a.x + along * dx - point.x, a.y + along * dy - point.y);
}

/* Strokes without what lies under the eraser on its way from a to b, however fast that was. */
function erased(strokes, a, b) {
  const left = [];
  for (const stroke of strokes) {
    const stays = stroke.map((point) => distanceFromWay(point, a, b) > ERASER);
    if (stays.every(Boolean)) {
      left.push(stroke);
      continue;
    }
    let part = [];
    stroke.forEach((point, i) => {
      if (stays[i]) part.push(point);
      if (!stays[i] || i === stroke.length - 1) {
        if (part.length > 1) left.push(part);
        part = [];
      }
    });
  }
  return left;
}

/* Draw strokes: place(point) gives pixels, line their width at middle pressure. */
function paint(context, strokes, place, line) {
  context.lineCap = "round";
  context.lineJoin = "round";
  context.strokeStyle = "#000000";
  for (const stroke of strokes) {
    const even = stroke.every((point) => point.p === stroke[0].p);
    if (even) {
      context.lineWidth = line * stroke[0].p;
      context.beginPath();
      stroke.forEach((point, i) => {
        const [x, y] = place(point);
        if (i === 0) context.moveTo(x, y);
        context.lineTo(x, y);
      });
      context.stroke();
    } else {
      for (let i = 1; i < stroke.length; i += 1) {
        context.lineWidth = (line * (stroke[i - 1].p + stroke[i].p)) / 2;
        context.beginPath();
        context.moveTo(...place(stroke[i - 1]));
        context.lineTo(...place(stroke[i]));
        context.stroke();
      }
    }
  }
}

class Drawing {
  constructor(canvas, changed) {
    this.canvas = canvas;
    this.changed = changed; // (finished) => told of every change, and of strokes as they grow
    this.look = { width: 256, height: 256, line: 0.02, extent: 0.8, centre: [0.5, 0.5] };
    this.state = { strokes: [], base: null };
    this.past = [];
    this.future = []; // what was undone
    this.tool = "pen";
    this.current = null; // the stroke under the pen
    this.pointer = null;
    this.before = null; // what an eraser began with
    this.wiped = null; // where it was last
    this.cursor = null; // of the keyboard
    this.frame = null;
    this.layer = document.createElement("canvas");
    this.painted = null; // the state that the layer shows
    this.paintedLook = null;
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", (event) => this.up(event));
    canvas.addEventListener("blur", () => {
      this.cursor = null;
      if (this.pointer === null) this.finish();
      this.draw();
    });
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  get isEmpty() {
    return this.state.strokes.length === 0 && this.state.base === null;
  }

  get height() {
    return this.look.height / this.look.width;
  }

  setLook(look) {
    this.look = look;
    this.canvas.style.aspectRatio = `${look.width} / ${look.height}`;
    this.draw();
  }

  /* True while a pen or an eraser is down. */
  get isActive() {
    return this.current !== null || this.before !== null;
  }

  /* Take a new state; what was can be had again. */
  set(state) {
    this.past.push(this.state);
    this.future = [];
    this.take(state);
  }

  undo() {
    this.step(this.past, this.future);
  }

  redo() {
    this.step(this.future, this.past);
  }

  step(from, to) {
    if (!from.length) return;
    this.current = null;
    this.before = null;
    to.push(this.state);
    this.take(from.pop());
  }

  take(state) {
    this.state = state;
    this.draw();
    this.changed(true);
  }

  clear() {
    if (!this.isEmpty) this.set({ strokes: [], base: null });
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    // The width of the border belongs to neither side.
    const inset = this.canvas.clientLeft;
    const x = (event.clientX - box.left - inset) / this.canvas.clientWidth;
    const y = (event.clientY - box.top - inset) / this.canvas.clientWidth;
    const p = event.pointerType === "pen" && event.pressure > 0 ? 0.5 + event.pressure : 1;
    return { x: Math.min(1, Math.max(0, x)), y: Math.min(this.height, Math.max(0, y)), p };
  }

  down(event) {
    // Button 5 is the other end of a pen.
    if (this.pointer !== null || ![0, 5].includes(event.button) || !event.isPrimary) return;
    this.finish();
    this.pointer = event.pointerId;
    this.canvas.setPointerCapture(event.pointerId);
    this.cursor = null;
    this.begin(this.point(event), event.button === 5 ? "eraser" : this.tool);
  }

  move(event) {
    if (event.pointerId !== this.pointer) return;
    const coalesced = event.getCoalescedEvents ? event.getCoalescedEvents() : [];
    for (const each of coalesced.length ? coalesced : [event]) this.extend(this.point(each));
    this.draw();
    this.changed(false);
  }

  up(event) {
    if (event.pointerId !== this.pointer) return;
    this.pointer = null;
    this.finish();
  }

  begin(point, tool) {
    if (tool === "eraser") {
      this.before = this.state;
      this.wiped = point;
    } else this.current = [point];
    this.extend(point);
    this.changed(false);
    this.draw();
  }

  extend(point) {
    if (this.before) {
      this.state = { ...this.state, strokes: erased(this.state.strokes, this.wiped, point) };
      this.wiped = point;
    } else if (this.current && distance(point, this.current.at(-1)) > 0) {
      this.current.push(point);
    }
  }

  finish() {
    if (this.before) {
      const { before } = this;
      this.before = null;
      const { state } = this;
      const same =
        state.strokes.length === before.strokes.length &&
        state.strokes.every((stroke, i) => stroke === before.strokes[i]);
      this.state = before;
      if (same) this.changed(false);
      else this.set(state);
    } else if (this.current) {
      const stroke = densified(this.current);
      this.current = null;
      this.set({ ...this.state, strokes: [...this.state.strokes, stroke] });
    }
  }

  /* The keyboard: returns what to say, or null for a key that is none of ours. */
  key(event) {
    const step = event.shiftKey ? 0.005 : 0.02;
    const moves = {
      ArrowLeft: [-step, 0],
      ArrowRight: [step, 0],
      ArrowUp: [0, -step],
      ArrowDown: [0, step],
    };
    this.cursor ??= { x: 0.5, y: this.height / 2, p: 1 };
    if (event.key === " ") {
      if (this.current || this.before) {
        this.finish();
        return "Pen up.";
      }
      this.begin(this.cursor, this.tool);
      return this.tool === "pen" ? "Pen down." : "Eraser down.";
    }
    if (!(event.key in moves)) return null;
    const [dx, dy] = moves[event.key];
    this.cursor = {
      x: Math.min(1, Math.max(0, this.cursor.x + dx)),
      y: Math.min(this.height, Math.max(0, this.cursor.y + dy)),
      p: 1,
    };
    this.extend(this.cursor);
    this.draw();
    this.changed(false);
    return "";
  }

  /* Show it on the page, once a frame. */
  draw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.show();
    });
  }

  show() {
    const { canvas, layer } = this;
    const width = Math.round(canvas.clientWidth * (window.devicePixelRatio || 1));
    const height = Math.round(width * this.height);
    if (!width) return;
    const isNew = canvas.width !== width || canvas.height !== height;
    if (isNew) {
      canvas.width = layer.width = width;
      canvas.height = layer.height = height;
    }
    // What is finished is painted once and then copied.
    if (isNew || this.painted !== this.state || this.paintedLook !== this.look) {
      this.paintOn(layer.getContext("2d"), width, height, this.state.strokes);
      this.painted = this.state;
      this.paintedLook = this.look;
    }
    const context = canvas.getContext("2d");
    context.drawImage(layer, 0, 0);
    if (this.current) {
      const line = this.look.line * Math.max(width, height);
      paint(context, [this.current], (point) => [point.x * width, point.y * width], line);
    }
    if (this.cursor) {
      const [x, y] = [this.cursor.x * width, this.cursor.y * width];
      context.lineWidth = Math.max(2, width / 200);
      context.strokeStyle = this.current || this.before ? "#a40e26" : "#0550ae";
      context.beginPath();
      context.moveTo(x - width / 40, y);
      context.lineTo(x + width / 40, y);
      context.moveTo(x, y - width / 40);
      context.lineTo(x, y + width / 40);
      context.stroke();
    }
  }

  paintOn(context, width, height, strokes) {
    context.fillStyle = "#ffffff";
    context.fillRect(0, 0, width, height);
    const picture = this.state.base && this.state.base.picture;
    if (picture) {
      const scale = Math.min(width / picture.width, height / picture.height);
      const [w, h] = [picture.width * scale, picture.height * scale];
      context.drawImage(picture, (width - w) / 2, (height - h) / 2, w, h);
    }
    const line = this.look.line * Math.max(width, height);
    paint(context, strokes, (point) => [point.x * width, point.y * width], line);
  }

  /* The picture that is sent: as large as the model's sketches, their place and width of line. */
  render(canvas) {
    const { width, height, line, extent, centre } = this.look;
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d");
    const { base } = this.state;
    const strokes = this.current ? [...this.state.strokes, this.current] : this.state.strokes;
    if (base || !strokes.length) {
      this.paintOn(context, width, height, strokes);
      return;
    }
    context.fillStyle = "#ffffff";
    context.fillRect(0, 0, width, height);
    const points = strokes.flat();
    const xs = points.map((point) => point.x);
    const ys = points.map((point) => point.y);
    const least = (values) => values.reduce((a, b) => Math.min(a, b));
    const most = (values) => values.reduce((a, b) => Math.max(a, b));
    const [left, right, top, bottom] = [least(xs), most(xs), least(ys), most(ys)];
    const thick = line * Math.max(width, height);
    const room = (side, box) => (box > 0 ? Math.max(1, extent * side - thick) / box : Infinity);
    const scale = Math.min(room(width, right - left), room(height, bottom - top), LARGEST_SCALE * width);
    const [x0, y0] = [(left + right) / 2, (top + bottom) / 2];
    const place = (point) => [
      centre[0] * width + scale * (point.x - x0),
      centre[1] * height + scale * (point.y - y0),
    ];
    paint(context, strokes, place, thick);
  }
}
