"""The Dockerfile, as far as a machine without a Docker engine can tell."""

import pathlib
import re
import shlex
import tempfile
import tomllib
import unittest

import context
import image
from tools import DEPLOY, ROOT, TOOLS, run


class Dockerfile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
        cls.steps = [line.split(maxsplit=1) for line in joined.splitlines()]
        last = max(index for index, (word, _) in enumerate(cls.steps) if word == "FROM")
        cls.build, cls.final = cls.steps[1:last], cls.steps[last:]

    def value(self, word):
        (value,) = [rest for step, rest in self.final if step == word]
        return value

    def test_the_linter_has_no_objection(self):
        run(TOOLS / "hadolint", DEPLOY / "Dockerfile")

    def test_the_final_stage_holds_what_was_laid_out_and_nothing_else(self):
        self.assertEqual(self.value("FROM"), "scratch")
        self.assertEqual(self.value("COPY"), "--from=build /image/ /")
        self.assertNotIn("RUN", [word for word, _ in self.final])
        self.assertNotIn("HEALTHCHECK", [word for word, _ in self.final])

    def test_it_is_not_root_and_ends_by_the_signal_that_hookonce_ends_by(self):
        self.assertEqual(self.value("USER"), image.USER)
        self.assertEqual(self.value("STOPSIGNAL"), "SIGTERM")
        self.assertEqual(self.value("ENTRYPOINT"), '["/usr/bin/hookonce"]')

    def test_the_build_is_of_what_is_locked_in_a_profile_that_there_is(self):
        (step,) = [rest for word, rest in self.build if word == "RUN" and "cargo" in rest and "lay-out" in rest]
        build, lay_out = step[step.index("cargo build") :].split("&&")
        self.assertEqual(shlex.split(build), ["cargo", "build", "--profile", "dist", "--locked"])
        self.assertEqual(shlex.split(lay_out), ["deploy/lay-out-image", "target/dist/hookonce", "/image"])
        profiles = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["profile"]
        self.assertIn("dist", profiles)

    def test_the_context_has_all_that_the_build_takes_and_no_more(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            sent = context.lay_out(folder)
            tops = {path.split("/")[0] for path in sent}
            self.assertLessEqual({"Cargo.toml", "Cargo.lock", "src", "deploy"}, tops)
            self.assertFalse(tops & {"tests", "conf", ".git", "target"})
            self.assertEqual([path for path in sent if path.startswith("deploy/")], ["deploy/lay-out-image"])
            # Cargo reads every target's file and the lock without changing it.
            run("cargo", "tree", "--locked", "--offline", "--quiet", "--edges", "normal,build", cwd=folder)
            sources = [path.relative_to(ROOT) for path in (ROOT / "src").rglob("*.rs")]
            self.assertLessEqual({str(path) for path in sources}, set(sent))


class Image(unittest.TestCase):
    """The binary among the final stage's files. Where the tests are not root's, the change of root is left out."""

    def test_the_binary_runs_with_the_files_of_the_image_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            root = image.lay_out(folder)
            version = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["package"]["version"]
            self.assertEqual(run(*image.command(root, "--version")), f"hookonce {version}\n")
            self.assertFalse((root / "bin/sh").exists())
            self.assertGreater((root / "etc/ssl/certs/ca-certificates.crt").stat().st_size, 0)
