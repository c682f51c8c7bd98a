"""Files that are for their owner alone."""

import os
from pathlib import Path

__all__ = ["make_file"]


def make_file(path: str) -> None:
    """Make the file and its folders where they are missing, for their owner alone; leave what is there.

    Raises:
        OSError: It cannot be made, or is a folder.
    """
    folder = Path(path).absolute().parent
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir(mode=0o700, exist_ok=True)
    if Path(path).is_dir():
        raise IsADirectoryError(0, "it is a folder; name a file in it", path)
    if not Path(path).exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
