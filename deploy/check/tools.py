"""Where things are, and how a tool is run: what the checks share."""

import os
import pathlib
import subprocess
import sys
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
HOOKONCE = pathlib.Path(os.environ.get("HOOKONCE", ROOT / "target/debug/hookonce"))
# The tools from PyPI lie beside the Python that runs the checks.
TOOLS = pathlib.Path(sys.executable).parent

# The secrets of compose.yaml's gateway.
SECRETS = {"STRIPE_WEBHOOK_SECRET": "whsec_quickstart", "ORDERS_WEBHOOK_SECRET": "quickstart"}


def run(*command, **options):
    """Runs a tool to its end and gives what it printed; a failure is told with all of that."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, **options)
    if done.returncode != 0:
        raise AssertionError(f"`{' '.join(words)}` ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def read_yaml(path):
    with open(path, encoding="utf-8") as file:
        return yaml.safe_load(file)


def seconds(text):
    """`30s` as a number."""
    assert text.endswith("s") and text[:-1].isdigit(), f"`{text}` is not in whole seconds"
    return int(text[:-1])


def check_config(text, variables):
    """Lets `hookonce check` judge a configuration. Gives it as read; warnings are faults, too."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "hookonce.yaml")
        path.write_text(text, encoding="utf-8")
        command = [HOOKONCE, "check", "--config", path]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **variables})
    assert done.returncode == 0 and not done.stderr, f"{text}\n{done.stdout}{done.stderr}"
    return yaml.safe_load(text)
