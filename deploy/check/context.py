"""What Docker would send to a build: the files of the repository that .dockerignore lets through."""

import fnmatch
import shutil
import subprocess

from tools import ROOT


def matches(pattern, path):
    """Whether a pattern names this file or a folder above it."""
    parts = path.split("/")
    for length in range(1, len(parts) + 1):
        if pattern.startswith("**/"):
            if fnmatch.fnmatchcase(parts[length - 1], pattern[3:]):
                return True
        elif fnmatch.fnmatchcase("/".join(parts[:length]), pattern) and pattern.count("/") == length - 1:
            return True
    return False


def is_sent(path, patterns):
    """The last pattern that fits decides; `!` lets a file through again."""
    sent = True
    for pattern in patterns:
        if matches(pattern.removeprefix("!"), path):
            sent = pattern.startswith("!")
    return sent


def lay_out(folder):
    """Copies the context to a folder and gives the files' paths in it."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    # Files that are not committed yet are sent as well, if git does not ignore them.
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    paths = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    sent = [path for path in paths if is_sent(path, patterns) and (ROOT / path).is_file()]
    for path in sent:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, folder / path)
    return sent
