"""Check an installed teffmem, away from its sources: the package is whole, its command runs, a memory is found."""

import asyncio
import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path

import teffmem


async def put_and_search() -> list[str]:
    """Store three facts in a new file with the default embedder, and return the keys nearest to a question."""
    async with teffmem.MemoryStore.open("check.db") as memory:
        home = ("users", "ana")
        await memory.put(home, "pet", {"text": "Ana has a dog called Rex."})
        await memory.put(home, "job", {"text": "Ana works at night as a nurse."})
        await memory.put(("users", "ben"), "pet", {"text": "Ben keeps three cats."})
        return [item.key for item in await memory.search(home, query="Which animal lives with her?")]


package = resources.files("teffmem")
assert Path(str(package)).is_relative_to(sys.prefix), f"{package} is not the installed package"
assert (package / "py.typed").is_file()
licences = {Path(file).name for file in metadata.files("teffmem") or []}
assert {"LICENSE", "NOTICE"} <= licences, licences

command = Path(sys.executable).with_name("teffmem")
subprocess.run([command, "demo"], check=True)
assert asyncio.run(put_and_search()) == ["pet", "job"]
print(f"teffmem {metadata.version('teffmem')} works from its wheel")
