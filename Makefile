# `make run` and `make test` are complete on a fresh Debian machine that has Rust and make.

CONFIG ?= conf/quickstart.yaml

.PHONY: run test check-deploy torture bench bench-parts setup setup-build setup-test setup-deploy setup-bench

# The gateway with a sample handler behind it, both in this terminal. Ctrl-C ends both.
run: setup-build
	cargo build --release --locked
	scripts/run-with-sample-handler target/release/hookonce $(CONFIG)

# Everything that a change must pass. The tests wait more than they compute, so more of them run at once than there are
# cores.
test: setup-test
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --document-private-items
	cargo test --locked -- --test-threads=8
	benches/guard
	$(MAKE) check-deploy

# What is in deploy/, with real tools: kustomize, promtool, a Prometheus that scrapes a running gateway. It ends all that
# it starts.
check-deploy: setup-deploy
	cargo build --locked
	PYTHONDONTWRITEBYTECODE=1 target/deploy-tools/bin/python -m unittest discover --start-directory deploy/check

# Two gateways, one Redis, and ten minutes in which everything goes wrong. Prints its seed and its figures, and fails if
# anything was lost or doubled. SEED repeats a schedule of faults, TORTURE_SECONDS says how long they last. Afterwards a minute
# with `appendfsync everysec` and a Redis that loses power, which only tells what that loses.
torture: setup-test
	SEED=$(SEED) TORTURE_SECONDS=$(or $(TORTURE_SECONDS),600) cargo test --locked --test torture -- --nocapture nothing_is_lost
	SEED=$(SEED) TORTURE_SECONDS=60 FSYNC=everysec cargo test --locked --test torture -- --nocapture nothing_is_lost

# The table of benches/RESULTS.md, in about a quarter of an hour. A few rows only: ROWS=first,duplicate ROUNDS=3 make bench
bench: setup-bench
	test -n "$(HOOKONCE)" || cargo build --profile dist --locked
	benches/run

# How long the pure parts take; benches/RESULTS.md quotes what the last of these said.
bench-parts: setup-build
	cargo bench --locked --bench parts

# Everything that `run` and `test` need.
setup: setup-test setup-deploy

setup-build:
	scripts/setup cc=gcc cmake

setup-test: setup-build
	scripts/setup redis-server valgrind python3 curl openssl

setup-deploy: setup-test
	scripts/setup python3-venv prometheus
	scripts/setup-deploy-tools

setup-bench: setup-test
	scripts/setup nginx =libnginx-mod-http-lua =lua-nginx-redis =lua-cjson wrk node=nodejs npm
