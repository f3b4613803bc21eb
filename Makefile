# Two commands are enough to begin with: make run, make test.

GO      ?= go
BIN     := bin/interlock
FUZZ    ?= 1s
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

.PHONY: run test build plugins ci format vet lint race bounds compilers recovery sdk guests fuzz bench instructions instructions-write clean

run: build                      ## build and show the recovery happening (ARGS=--once exits afterwards)
	$(BIN) demo $(ARGS)

test: plugins                   ## all Go tests
	$(GO) test ./...

build: plugins                  ## the one binary
	$(GO) build -trimpath -ldflags "-X main.version=$(VERSION)" -o $(BIN) ./cmd/interlock

plugins:                        ## the shipped adapters as Wasm modules in plugins/built: those whose source has changed
	@set -e; trap 'rm -f bin/plugin-tool' EXIT; tool=; \
	for main in plugins/*/wasm/main.go; do \
	  name="$${main#plugins/}"; name="$${name%%/*}"; out="plugins/built/$$name.wasm"; \
	  if [ -f "$$out" ] && [ -z "$$(find "plugins/$$name" sdk/go -name '*.go' ! -name '*_test.go' -newer "$$out" | head -n 1)" ]; then continue; fi; \
	  if [ -z "$$tool" ]; then tool=bin/plugin-tool; mkdir -p bin; $(GO) build -o "$$tool" ./cmd/interlock; fi; \
	  echo "plugin $$name"; "$$tool" plugin build "plugins/$$name" -o "$$out" >/dev/null; touch "$$out"; \
	done

ci: compilers format vet lint build race bounds recovery sdk fuzz instructions  ## what continuous integration runs

format:                         ## every file is formatted
	@out="$$($(GO) tool gofumpt -l .)"; if [ -n "$$out" ]; then echo "not formatted (go tool gofumpt -w .):"; echo "$$out"; exit 1; fi

vet:
	$(GO) vet ./...

lint:
	$(GO) tool staticcheck ./...

race: plugins                   ## all Go tests, with the race detector; the conformance kit, which compiles guests, is among the bounds
	$(GO) test -race -timeout 15m $$($(GO) list ./... | grep -v '/sdk/conformance$$')

bounds: plugins                 ## what is not for the race detector: allocations, the work of modules, the ABI's guests in Go, C and Rust, long computations
	$(GO) test -run 'Work' ./gateway/adapter
	$(GO) test -run 'Alloc' ./gateway/adapter ./gateway/downstream ./gateway/policy ./gateway/telemetry ./gateway/upstream
	$(GO) test -run 'Alloc|Plugin|Guard' ./gateway/server
	$(GO) test ./sdk/conformance
	$(GO) test -run "Policy|Plugin" ./cmd/interlock

compilers:                      ## what the guests in C and Rust are built with, where it can be installed
	@if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && ! { command -v wasm-ld && [ -x /usr/bin/rustc ] && command -v clang; } >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends clang lld rustc libstd-rust-dev-wasm32 >/dev/null || \
	    echo "the guests in C and Rust are left out: their compilers cannot be installed"; \
	fi

recovery:                       ## the recovery machine's property, 100,000 times
	$(GO) test -run 'TestNoInterlockBreaks' ./gateway/recovery -rapid.checks=100000

sdk: build                      ## the official OpenAI SDKs against the running binary
	$(MAKE) -C examples/clients test BIN=$(abspath $(BIN))

guests:                         ## the plugin ABI's reference guests in Go, C and Rust, as modules in bin/guests
	sdk/guests/build.sh $(abspath bin/guests)

fuzz: plugins                   ## every parser, briefly, two at a time (FUZZ=1m for longer)
	@grep -rlE --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do \
	  sed -n "s|^func \(Fuzz[A-Za-z0-9_]*\)(.*|$$(dirname "$$file") \1|p" "$$file"; \
	done | xargs -P 2 -L 1 sh -c 'echo "fuzz $$1 $$2"; $(GO) test -run "^$$" -fuzz "^$$2\$$" -fuzztime $(FUZZ) -parallel 1 "$$1" </dev/null || { echo "fuzz $$1 $$2: failed"; exit 1; }' fuzz

bench: plugins                  ## the benchmark of record beside nginx, under 20 minutes, into bench/report (ARGS=-quick: 2 minutes; ARGS=-h)
	@mkdir -p bin && $(GO) build -o bin/bench ./bench
	bin/bench $(ARGS)

instructions: build             ## the instructions of a request against the committed figures (needs valgrind)
	$(GO) build -o bin/bench ./bench
	bin/bench instructions -gateway $(BIN)

instructions-write: build       ## new figures to commit, for a change that is worth its instructions
	$(GO) build -o bin/bench ./bench
	bin/bench instructions -gateway $(BIN) -write

clean:
	rm -rf bin data
