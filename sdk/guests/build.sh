#!/bin/sh
# Builds the reference guests as modules: build.sh OUT [go|c|rust]...
# A language whose compiler is not there is skipped, with a message.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
shift
mkdir -p "$out"
[ $# -gt 0 ] || set -- go c rust

for language; do
    case $language in
    go)
        (cd "$here" && GOOS=wasip1 GOARCH=wasm GOFLAGS= go build -buildmode=c-shared -o "$out/echo-go.wasm" ./go/echo/wasm)
        ;;
    c)
        clang=${CLANG:-clang}
        if ! command -v "$clang" >/dev/null || ! command -v wasm-ld >/dev/null; then
            echo "skipped: the C guest needs clang and wasm-ld (Debian: clang, lld)"
            continue
        fi
        "$clang" --target=wasm32 -std=c11 -Os -Wall -Wextra -Werror -nostdlib -ffreestanding -mbulk-memory \
            -Wl,--no-entry -Wl,--strip-all -o "$out/echo-c.wasm" "$here/c/echo.c"
        ;;
    rust)
        rustc=${RUSTC:-/usr/bin/rustc} # the one that has Debian's libstd-rust-dev-wasm32
        command -v "$rustc" >/dev/null || rustc=rustc
        libraries=$("$rustc" --target wasm32-unknown-unknown --print target-libdir 2>/dev/null || true)
        if [ ! -d "$libraries" ]; then
            echo "skipped: the Rust guest needs rustc with wasm32-unknown-unknown (Debian: rustc, libstd-rust-dev-wasm32, lld)"
            continue
        fi
        "$rustc" --target wasm32-unknown-unknown --crate-type cdylib --edition 2021 -C opt-level=s -C panic=abort -C strip=symbols \
            -D warnings -o "$out/echo-rust.wasm" "$here/rust/echo.rs"
        ;;
    *)
        echo "there is no guest in $language" >&2
        exit 2
        ;;
    esac
done
