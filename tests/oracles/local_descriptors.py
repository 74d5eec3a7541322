"""Local descriptors and word histograms by loops over pixels, from their definitions."""

import math

import numpy as np


def at(image, row, column):
    """Value of a pixel, 0 outside."""
    height, width = image.shape
    return image[row, column] if 0 <= row < height and 0 <= column < width else 0.0


def shog_responses(mask):
    """Magnitude in each of 4 orientations, (4, h, w)."""
    height, width = mask.shape
    taps = [math.exp(-(d**2) / 8) for d in range(-3, 4)]
    blurred = np.zeros(mask.shape)
    for y in range(height):
        for x in range(width):
            blurred[y, x] = sum(
                taps[i + 3] * taps[j + 3] * at(mask, y + i, x + j)
                for i in range(-3, 4)
                for j in range(-3, 4)
            ) / (sum(taps) ** 2)
    responses = np.zeros((4, height, width))
    for y in range(height):
        for x in range(width):
            dx = dy = 0.0
            for d, weight in ((-1, 1), (0, 2), (1, 1)):
                dx += weight * (at(blurred, y + d, x + 1) - at(blurred, y + d, x - 1))
                dy += weight * (at(blurred, y + 1, x + d) - at(blurred, y - 1, x + d))
            angle = math.degrees(math.atan2(dy, dx)) % 180
            for k in range(4):
                apart = abs(angle - 45 * k)
                apart = min(apart, 180 - apart)
                responses[k, y, x] = math.hypot(dx, dy) * max(0.0, 1 - apart / 45)
    return responses


def shog_window(mask, row, column):
    """SHOG of the window around a pixel, (64,)."""
    responses = shog_responses(mask)
    height, width = mask.shape
    side = 4 * math.ceil(math.sqrt(0.125 * height * width) / 4)
    tile = side // 4
    sigma = tile / 3
    values = []
    for i in range(4):
        for j in range(4):
            y = row - side // 2 + i * tile + tile // 2
            x = column - side // 2 + j * tile + tile // 2
            for k in range(4):
                total = 0.0
                for v in range(height):
                    for u in range(width):
                        if max(abs(v - y), abs(u - x)) <= 4 * sigma:
                            squared = (v - y) ** 2 + (u - x) ** 2
                            total += math.exp(-squared / (2 * sigma**2)) * responses[k, v, u]
                values.append(total)
    return np.array(values) / np.linalg.norm(values)


def harmonic(known, values):
    """Solution of the Laplace equation by dense elimination, natural borders."""
    height, width = known.shape
    A, b = np.eye(height * width), np.where(known, values, 0.0).ravel()
    for y in range(height):
        for x in range(width):
            if known[y, x]:
                continue
            p = y * width + x
            A[p, p] = 0
            for v, u in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if 0 <= v < height and 0 <= u < width:
                    A[p, p] += 1
                    A[p, v * width + u] -= 1
    return np.linalg.solve(A, b).reshape(known.shape)


def gradient_of_dilated(mask):
    """Dilated mask and the Sobel gradient of it, rows then columns, borders replicated."""
    height, width = mask.shape
    dilated = np.zeros(mask.shape, dtype=bool)
    for y in range(height):
        for x in range(width):
            dilated[y, x] = mask[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2].any()
    dx, dy = np.zeros(mask.shape), np.zeros(mask.shape)
    for y in range(height):
        for x in range(width):

            def value(v, u):
                return float(dilated[min(max(v, 0), height - 1), min(max(u, 0), width - 1)])

            for d, weight in ((-1, 1), (0, 2), (1, 1)):
                dx[y, x] += weight * (value(y + d, x + 1) - value(y + d, x - 1))
                dy[y, x] += weight * (value(y + 1, x + d) - value(y - 1, x + d))
    return dilated, dy, dx


def gf_hog_window(field, row, column, side):
    """HOG of 3 x 3 cells around a pixel, (81,)."""
    height, width = field.shape
    top, left = row - 3 * side // 2, column - 3 * side // 2
    histograms = np.zeros((3, 3, 9))
    for y in range(top, top + 3 * side):
        for x in range(left, left + 3 * side):
            dy = (field[min(y + 1, height - 1), x] - field[max(y - 1, 0), x]) / 2
            dx = (field[y, min(x + 1, width - 1)] - field[y, max(x - 1, 0)]) / 2
            share = (math.atan2(dy, dx) + math.pi) / (2 * math.pi)
            cell = histograms[(y - top) // side, (x - left) // side]
            cell[round(8 * share)] += math.hypot(dx, dy)
    return histograms.ravel() / np.linalg.norm(histograms)


def sift_patch(image, row, column, side):
    """SIFT of an upright patch with trilinear shares, (128,)."""
    height, width = image.shape
    histograms = np.zeros((4, 4, 8))
    for y in range(1, height - 1):
        for x in range(1, width - 1):
            down, right = (y - row) / side, (x - column) / side
            dx = image[y, x + 1] - image[y, x - 1]
            dy = image[y - 1, x] - image[y + 1, x]
            if max(abs(down), abs(right)) >= 2.5 or dx == dy == 0:
                continue
            turn = math.degrees(math.atan2(dy, dx)) % 360 / 45
            weight = math.hypot(dx, dy) * math.exp(-(down**2 + right**2) / 8)
            for i in range(4):
                for j in range(4):
                    for k in range(8):
                        apart = abs(turn - k)
                        shares = (abs(down + 1.5 - i), abs(right + 1.5 - j), min(apart, 8 - apart))
                        histograms[i, j, k] += weight * math.prod(max(0, 1 - s) for s in shares)
    descriptor = histograms.ravel() / np.linalg.norm(histograms)
    descriptor = np.minimum(descriptor, 0.2)
    return descriptor / np.linalg.norm(descriptor)


def patch_difference(mask, p, q):
    """Sum of squared differences of the 5 x 5 patches around two pixels."""
    return sum(
        (float(at(mask, p[0] + i, p[1] + j)) - float(at(mask, q[0] + i, q[1] + j))) ** 2
        for i in range(-2, 3)
        for j in range(-2, 3)
    )


def self_similarity(mask, row, column):
    """Largest similarity in 4 rings of 20 angles, (80,), not stretched."""
    p = (row, column)
    variation = max(
        patch_difference(mask, p, (row + i, column + j)) for i in (-1, 0, 1) for j in (-1, 0, 1)
    )
    largest = np.zeros((4, 20))
    for y in range(-40, 41):
        for x in range(-40, 41):
            distance = math.sqrt(y * y + x * x)
            if not 2.5 <= distance <= 40:
                continue
            ring = sum(distance >= edge for edge in (5, 10, 20))
            angle = int(math.degrees(math.atan2(-y, x)) % 360 // 18)
            difference = patch_difference(mask, p, (row + y, column + x))
            similarity = math.exp(-difference / max(variation, 5))
            largest[ring, angle] = max(largest[ring, angle], similarity)
    return largest.ravel()


def pyramid(words, positions, n_words):
    """Word histograms of 1 x 1, 2 x 2 and 4 x 4 cells, (21 * n_words,)."""
    rows = []
    for side, weight in ((1, 0.25), (2, 0.25), (4, 0.5)):
        for i in range(side):
            for j in range(side):
                counts = [0.0] * n_words
                for word, (y, x) in zip(words, positions, strict=True):
                    if i == min(int(y * side), side - 1) and j == min(int(x * side), side - 1):
                        counts[word] += weight / len(words)
                rows.extend(counts)
    return np.array(rows)


def window_tensors(mask, row, column, side):
    """Structure tensors of the 4 x 4 tiles of a window, pixel by pixel, of unit length."""
    padded = np.pad(mask.astype(float), 2)

    def at(y, x):
        y, x = y + 2, x + 2
        return padded[y, x] if 0 <= y < padded.shape[0] and 0 <= x < padded.shape[1] else 0.0

    tile, values = side // 4, []
    for down in range(4):
        for right in range(4):
            tensor = np.zeros((2, 2))
            for y in range(row - side // 2 + down * tile, row - side // 2 + (down + 1) * tile):
                for x in range(
                    column - side // 2 + right * tile, column - side // 2 + (right + 1) * tile
                ):
                    gx = sum(w * (at(y + d, x + 1) - at(y + d, x - 1)) for d, w in WEIGHTS)
                    gy = sum(w * (at(y + 1, x + d) - at(y - 1, x + d)) for d, w in WEIGHTS)
                    tensor += np.outer([gx, gy], [gx, gy])
            norm = np.linalg.norm(tensor)
            if norm:
                tensor /= norm
            values += [tensor[0, 0], np.sqrt(2) * tensor[0, 1], tensor[1, 1]]
    length = np.linalg.norm(values)
    return np.array(values) / (length or 1)


WEIGHTS = ((-1, 1), (0, 2), (1, 1))
