"""Write the database of waiting runs; see `runs_1/README.md`."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from loopagent import App
from loopagent.project import load_project


HERE = Path(__file__).parent / "runs_1"


async def main() -> None:
    """Have a run of each agent wait."""
    project = load_project(HERE / "project")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        app = App(
            agents=project.agents.values(), store=f"sqlite:///{path}", base_dir=project.folder
        )
        async with app:
            for name in sorted(project.agents):
                view = await app.start(name, "Do it.")
                view = await app.wait(view.id, timeout_seconds=20)
                assert view.waiting, view.public()
        (HERE / "runs.db").write_bytes(path.read_bytes())


if __name__ == "__main__":
    asyncio.run(main())
