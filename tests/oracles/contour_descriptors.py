"""Descriptors of contours pixel by pixel, as their equations say; slow and in double precision."""

import math

import numpy as np
from scipy.ndimage import correlate1d


def gaussian(sigma, length=None):
    if length is None:
        length = math.floor(5 * sigma)
        length = max(length + 1 if length % 2 == 0 else length, 3)
    values = [math.exp(-(((k - length // 2) / sigma) ** 2) / 2) for k in range(length)]
    return np.array(values) / sum(values)


def smooth(values, taps):
    across = correlate1d(values, taps, axis=1, mode="mirror")
    return correlate1d(across, taps, axis=0, mode="mirror")


def daisy_cubes(mask):
    gray = smooth(mask.astype(np.float64) / 255, gaussian(0.5, 5))
    dx = correlate1d(gray, [-0.5, 0, 0.5], axis=1, mode="mirror")
    dy = correlate1d(gray, [-0.5, 0, 0.5], axis=0, mode="mirror")
    cubes = ([], [])
    for h in range(8):
        angle = 2 * math.pi * h / 8
        layer = np.maximum(0, math.cos(angle) * dx + math.sin(angle) * dy)
        layer = smooth(layer, gaussian(math.sqrt(1.6**2 - 0.5**2)))
        layer = smooth(layer, gaussian(3.75))
        cubes[0].append(layer)
        cubes[1].append(smooth(layer, gaussian(math.sqrt(7.5**2 - 3.75**2))))
    return cubes


def daisy_from(cubes, row, column):
    points = [(0.0, 0.0, 0)]
    for ring, radius in enumerate((7.5, 15.0)):
        for t in range(8):
            angle = 2 * math.pi * t / 8
            points.append((radius * math.sin(angle), radius * math.cos(angle), ring))
    height, width = cubes[0][0].shape
    values = []
    for down, right, ring in points:
        # Rounded, so that a step of -15 pixels is not one of -15 and 1e-15.
        y, x = round(row + down, 9), round(column + right, 9)
        top, left = math.floor(y), math.floor(x)
        cell = np.zeros(8)
        if 0 <= top < height and 0 <= left < width:
            bottom, beside = min(top + 1, height - 1), min(left + 1, width - 1)
            for h, layer in enumerate(cubes[ring]):
                upper = (left + 1 - x) * layer[top, left] + (x - left) * layer[top, beside]
                lower = (left + 1 - x) * layer[bottom, left] + (x - left) * layer[bottom, beside]
                cell[h] = (top + 1 - y) * upper + (y - top) * lower
        values.extend(cell / (math.sqrt((cell**2).sum()) + 1e-5))
    return np.array(values)


def bilinear(index, size, n_cells):
    """Cells that share a place, with their shares: (cell, share), also those outside the grid."""
    u = index / size * n_cells
    fraction = u - math.floor(u)
    left = math.floor(u - 0.5)
    share = 0.5 - fraction if fraction < 0.5 else 1.5 - fraction
    return [(left, share), (left + 1, 1 - share)]


def lks(mask, keyshapes, scales, blocks, n_nearest, squared):
    cubes = daisy_cubes(mask)
    histograms = np.zeros((blocks, blocks, len(keyshapes)))
    for row, column in np.argwhere(mask):
        descriptor = daisy_from(cubes, row, column)
        distances = ((keyshapes - descriptor) ** 2).sum(axis=1)
        if not squared:
            distances = np.sqrt(distances)
        nearest = np.argsort(distances)[:n_nearest]
        g = [math.exp(-0.5 * (distances[j] / scales[j]) ** 2) / scales[j] for j in nearest]
        for y, share_y in bilinear(row, mask.shape[0], blocks):
            for x, share_x in bilinear(column, mask.shape[1], blocks):
                if 0 <= y < blocks and 0 <= x < blocks:
                    for j, vote in zip(nearest, g, strict=True):
                        histograms[y, x, j] += vote / sum(g) * share_y * share_x
    for y in range(blocks):
        for x in range(blocks):
            histograms[y, x] /= math.sqrt((histograms[y, x] ** 2).sum()) + 1e-5
    return np.sqrt(histograms).ravel()


def sobel_at(gray, row, column):
    """Gradient to the right and downwards, borders repeated."""
    height, width = gray.shape
    gx = gy = 0.0
    for k, weight in ((-1, 1), (0, 2), (1, 1)):
        y, x = min(max(row + k, 0), height - 1), min(max(column + k, 0), width - 1)
        gx += weight * (gray[y, min(column + 1, width - 1)] - gray[y, max(column - 1, 0)])
        gy += weight * (gray[min(row + 1, height - 1), x] - gray[max(row - 1, 0), x])
    return gx, gy


def edge_angle(s, c):
    """Direction of an edge in [0, pi), at right angles to its gradients."""
    return (0.5 * math.atan2(s, c) + math.pi / 2) % math.pi


def helo(mask, cells=25, bins=72):
    gray = mask.astype(np.float64)
    s, c, n = (np.zeros((cells, cells)) for _ in range(3))
    for row, column in np.ndindex(mask.shape):
        cell = row * cells // mask.shape[0], column * cells // mask.shape[1]
        gx, gy = sobel_at(gray, row, column)
        s[cell] += 2 * gx * gy
        c[cell] += gx**2 - gy**2
        n[cell] += mask[row, column]
    histogram = np.zeros(bins)
    for cell in np.ndindex(cells, cells):
        if n[cell] > mask.shape[0] / cells / 2:
            place = math.floor(edge_angle(s[cell], c[cell]) / math.pi * bins)
            for step, weight in ((-1, 0.25), (0, 0.5), (1, 0.25)):
                histogram[(place + step) % bins] += weight
    return histogram / max(histogram.sum(), 1)


def shelo(mask, cells=25, bins=36, blocks=6, least=0.1, vote="product", root=True):
    gray = mask.astype(np.float64)
    s, c, strength = (np.zeros((cells, cells)) for _ in range(3))
    for row, column in np.ndindex(mask.shape):
        gx, gy = sobel_at(gray, row, column)
        magnitude, angle = math.hypot(gx, gy), math.atan2(gy, gx)
        for y, share_y in bilinear(row, mask.shape[0], cells):
            for x, share_x in bilinear(column, mask.shape[1], cells):
                if 0 <= y < cells and 0 <= x < cells:
                    s[y, x] += magnitude * math.sin(2 * angle)
                    c[y, x] += magnitude * math.cos(2 * angle)
                    strength[y, x] += magnitude * share_y * share_x
    strength /= strength.max()
    histograms = np.zeros((blocks, blocks, bins))
    for row, column in np.ndindex(cells, cells):
        if strength[row, column] <= least:
            continue
        angle = edge_angle(s[row, column], c[row, column])
        for y, share_y in bilinear(row, cells, blocks):
            for x, share_x in bilinear(column, cells, blocks):
                if not (0 <= y < blocks and 0 <= x < blocks):
                    continue
                for k, share in bilinear(angle, math.pi, bins):
                    amount = strength[row, column] * share_y * share_x
                    amount = amount * share if vote == "product" else amount + share
                    histograms[y, x, k % bins] += amount
    for y in range(blocks):
        for x in range(blocks):
            block = np.sqrt(histograms[y, x]) if root else histograms[y, x]
            norm = math.sqrt((block**2).sum())
            block = block / norm if norm else block
            histograms[y, x] = np.sqrt(block) if root else block
    return histograms.ravel()


def structure_tensor(gray, cells=20, least=4 / 255):
    size = len(gray)
    tensors = np.zeros((cells, cells, 2, 2))
    counts = np.zeros((cells, cells))
    for row, column in np.ndindex(gray.shape):
        cell = row * cells // size, column * cells // size
        gradient = sobel_at(gray, row, column)
        tensors[cell] += np.outer(gradient, gradient)
        counts[cell] += 1
    values = []
    for cell in np.ndindex(cells, cells):
        tensor = tensors[cell]
        if np.trace(tensor) < least**2 * counts[cell]:
            values += [0, 0, 0]
        else:
            tensor = tensor / np.linalg.norm(tensor)
            values += [tensor[0, 0], math.sqrt(2) * tensor[0, 1], tensor[1, 1]]
    return np.array(values)
