"use strict";

/* Pictures that a person sends, in a form that the server takes. */

const TAKEN = ["image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp"];
const LARGEST_FILE = 6 * 2 ** 20;
const MOST_PIXELS = 16e6;
const REDUCED = 2048; // pixels of the longer side of a picture that is sent smaller
const DRAWN = 1024; // and of an SVG

/* The picture in a file, or null for none that this browser can show. */
async function pictureOf(file) {
  const bitmap = await createImageBitmap(file).catch(() => null);
  if (bitmap !== null) return bitmap;
  const isSvg = file.type === "image/svg+xml" || /\.svg$/i.test(file.name || "");
  return isSvg ? drawnSvg(file) : null;
}

/* An SVG as the browser draws it: as an image it runs no scripts and loads nothing. */
async function drawnSvg(file) {
  const address = URL.createObjectURL(new Blob([file], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const { naturalWidth: width, naturalHeight: height } = image;
    return await createImageBitmap(onWhite(image, width, height, DRAWN / Math.max(width, height)));
  } catch {
    return null;
  } finally {
    URL.revokeObjectURL(address);
  }
}

function onWhite(picture, width, height, scale) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(scale * width));
  canvas.height = Math.max(1, Math.round(scale * height));
  const context = canvas.getContext("2d");
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  return canvas;
}

/* Base64 of a file as it is, or of its picture where the server would not take the file. */
async function contentOf(file, picture) {
  const { width, height } = picture;
  let address;
  if (TAKEN.includes(file.type) && file.size <= LARGEST_FILE && width * height <= MOST_PIXELS) {
    address = await new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.addEventListener("load", () => resolve(reader.result));
      reader.addEventListener("error", () => reject(reader.error));
      reader.readAsDataURL(file);
    });
  } else {
    const scale = Math.min(1, REDUCED / Math.max(width, height));
    const canvas = onWhite(picture, width, height, scale);
    address = canvas.toDataURL("image/png");
    if (address.length > (4 / 3) * LARGEST_FILE) address = canvas.toDataURL("image/jpeg", 0.92);
  }
  return address.slice(address.indexOf(",") + 1);
}
