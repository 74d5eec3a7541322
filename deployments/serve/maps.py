"""Maps of the galleries that are served: laid out one after the other, beside the searches."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

from deployments.serve import interface as out
from deployments.serve.live import Live
from deployments.serve.served_model import ServedModel
from deployments.serve.work import BusyError
from storage import StoreError
from tasks.collection_map import UNKNOWN, CollectionMap, collection_map_of
from tasks.workspace import Workspace


class Maps:
    """Maps by the key of a gallery.

    Parameters
    ----------
    live : Live
        What is served.
    """

    def __init__(self, live: Live) -> None:
        self._live = live
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="map")
        self._made: dict[str, Future[out.MapOut]] = {}
        self._lock = Lock()

    def get(self, model: ServedModel) -> out.MapOut:
        """Map of a gallery.

        Raises
        ------
        BusyError
            It is being laid out; ask again.
        StoreError
            Something is missing or damaged; the next one who asks lets it be tried again.
        """
        key = model.reference.key
        with self._lock:
            if key not in self._made:
                self._made[key] = self._pool.submit(laid_out, self._live.workspace, model)
            future = self._made[key]
        if not future.done():
            raise BusyError("the map is being laid out; it takes some seconds, once")
        try:
            return future.result()
        except StoreError:
            with self._lock:
                self._made.pop(key, None)
            raise

    def close(self) -> None:
        """Cancel what is waiting."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def laid_out(workspace: Workspace, model: ServedModel) -> out.MapOut:
    """Map of a gallery as it is sent."""
    with workspace.store.in_use():
        found = collection_map_of(workspace, model.reference)
    return described(model, found)


def described(model: ServedModel, found: CollectionMap) -> out.MapOut:
    """Places, titles and labels."""
    images, sketches = found.images.tolist(), found.sketches.tolist()
    return out.MapOut(
        key=model.reference.key,
        images=out.MapSideOut(
            row=images,
            x=found.image_places[:, 0].round(4).tolist(),
            y=found.image_places[:, 1].round(4).tolist(),
            title=[model.titles[row] for row in images],
            label=[model.labels[row] for row in images],
            name=[model.paths[row] for row in images],
            entered=found.image_rounds.tolist(),
        ),
        sketches=out.MapSideOut(
            row=sketches,
            x=found.sketch_places[:, 0].round(4).tolist(),
            y=found.sketch_places[:, 1].round(4).tolist(),
            title=[model.sketch(row).title for row in sketches],
            label=[model.sketch(row).label for row in sketches],
            name=[model.sketch(row).path for row in sketches],
            entered=found.sketch_rounds.tolist(),
        ),
        nearest=found.nearest.tolist(),
        right=[None if value == UNKNOWN else bool(value) for value in found.right.tolist()],
        held_out=found.held_out.tolist(),
    )
