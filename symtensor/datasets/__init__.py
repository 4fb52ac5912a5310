"""Labelled images from local files in their usual formats, and scikit-learn's digits. Nothing is downloaded or executed.

`load` gives what a training run needs: inputs and targets, split and scaled. `read_images` gives the images of a file or folder:
MNIST and FashionMNIST (idx, plain or gzip), CIFAR-10 and CIFAR-100 (pickled or binary batches), .npz archives.
"""

from __future__ import annotations

from symtensor.datasets.cifar import read_cifar_binary, read_cifar_pickle
from symtensor.datasets.errors import DatasetError
from symtensor.datasets.files import Images, read_images
from symtensor.datasets.idx import read_idx
from symtensor.datasets.loading import Dataset, load

__all__ = ["Dataset", "DatasetError", "Images", "load", "read_cifar_binary", "read_cifar_pickle", "read_idx", "read_images"]
