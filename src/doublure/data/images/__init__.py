"""LOAD: images from NPZ, IDX, folders, archives, Parquet or arrays, read under a schema; and writing synthetic ones."""

from doublure.data.images.opening import open_images
from doublure.data.images.records import Images, ImageSet
from doublure.data.images.sources import ImageSource

__all__ = ["ImageSet", "ImageSource", "Images", "open_images"]
