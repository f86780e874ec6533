"""ImageLocality: prefers nodes that already have the pod's images; large images count more."""

from collections.abc import Iterator

import numpy as np

from lowtide.framework.plugin import MAX_SCORE, IntArray, Nodes, Pod

_MEBIBYTE = 1024 * 1024
# The bytes of images for a score above 0, and per container for the highest score.
_LOWEST_BYTES = 23 * _MEBIBYTE
_HIGHEST_BYTES_PER_CONTAINER = 1000 * _MEBIBYTE


class ImageLocality:
    name = "ImageLocality"

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        """Weight each image by the share of nodes that have it. Otherwise a rare image would draw
        all pods to the few nodes with it."""
        containers = len(pod.spec.containers) + len(pod.spec.init_containers)
        highest = _HIGHEST_BYTES_PER_CONTAINER * max(containers, 1)
        held: IntArray = np.zeros(len(nodes), np.int64)
        is_any_held = False
        for image in _images_of(pod):
            node_count = nodes.image_node_count(image)
            if node_count:
                share = node_count / len(nodes.everything)
                held += (nodes.image_sizes(image) * share).astype(np.int64)
                np.minimum(held, highest, out=held)  # after each image, so that no sum overflows
                is_any_held = True
        if not is_any_held:
            return held
        held -= _LOWEST_BYTES
        np.maximum(held, 0, out=held)
        held *= MAX_SCORE
        held //= highest - _LOWEST_BYTES
        return held


def full_image_name(name: str) -> str:
    """The name with the tag `latest` if it has neither tag nor digest."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def _images_of(pod: Pod) -> Iterator[str]:
    """An image that two containers use comes twice."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        yield full_image_name(container.image)
    for volume in pod.spec.volumes:
        if volume.image is not None:
            yield full_image_name(volume.image.reference)
