"""Applications that are measured: the rows of the matrix."""

from __future__ import annotations

from enum import StrEnum


class Application(StrEnum):
    """What a transfer looks like to the network."""

    FTP = "ftp"
    HTTP_DATA = "http-data"
    HTTP_IMAGE = "http-image"
    HTTPS = "https"
    TCP = "tcp"
