"""ImageLocality: prefers nodes that hold the pod's images already, the large ones above all."""

from collections.abc import Iterator

import numpy as np

from lowtide.framework.plugin import MAX_SCORE, IntArray, Nodes, Pod

_MEBIBYTE = 1024 * 1024
# What a node must hold to score above 0, and, per container, to score highest.
_LOWEST_BYTES = 23 * _MEBIBYTE
_HIGHEST_BYTES_PER_CONTAINER = 1000 * _MEBIBYTE


class ImageLocality:
    name = "ImageLocality"

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        """An image counts by the share of nodes that hold it: else a rare one would draw all pods
        to the few nodes that do."""
        containers = len(pod.spec.containers) + len(pod.spec.init_containers)
        highest = _HIGHEST_BYTES_PER_CONTAINER * max(containers, 1)
        held: IntArray = np.zeros(len(nodes), np.int64)
        is_any_held = False
        for image in _images_of(pod):
            node_count = nodes.image_node_count(image)
            if node_count:
                share = node_count / len(nodes.everything)
                held += (nodes.image_sizes(image) * share).astype(np.int64)
                np.minimum(held, highest, out=held)  # each time, so that no sum is too large
                is_any_held = True
        if not is_any_held:
            return held
        held -= _LOWEST_BYTES
        np.maximum(held, 0, out=held)
        held *= MAX_SCORE
        held //= highest - _LOWEST_BYTES
        return held


def full_image_name(name: str) -> str:
    """With the tag that is meant where none is given; a digest stands for a tag."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def _images_of(pod: Pod) -> Iterator[str]:
    """One for each use: an image that two containers run counts twice."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        yield full_image_name(container.image)
    for volume in pod.spec.volumes:
        if volume.image is not None:
            yield full_image_name(volume.image.reference)
