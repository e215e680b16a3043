"""The image's files, laid out by the script that the Dockerfile runs, and a process that sees nothing else."""

import os
import pathlib

from tools import DEPLOY, HOOKONCE, run

USER = "65532:65532"

# Changing the root is root's business; who is not runs the binary as it is, and the checks say so.
CAN_ENTER = os.geteuid() == 0


def lay_out(folder):
    root = pathlib.Path(folder, "image")
    run(DEPLOY / "lay-out-image", HOOKONCE, root)
    # What Docker and Kubernetes put there.
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n", encoding="utf-8")
    os.chmod(folder, 0o755)
    return root


def command(root, *arguments):
    """hookonce as the container would run it: this root, this user."""
    if CAN_ENTER:
        return ["chroot", f"--userspec={USER}", str(root), "/usr/bin/hookonce", *arguments]
    return [str(HOOKONCE), *arguments]
