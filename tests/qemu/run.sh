#!/bin/sh
# The bits on Arm: cross-builds the tests that compare every SIMD target with the scalar row
# program, and runs them under qemu-user, so for NEON and for SVE at 128, 256 and 512 bits.
#   tests/qemu/run.sh BUILD_DIR
# Exits with 77 and a reason where a tool is missing or no root file system can be made.
set -eu

build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
sysroot=$build/sysroot
test_programs="heed_bits_test"

skip() {
  echo "skipped: $1"
  exit 77
}

for tool in aarch64-linux-gnu-g++-12 qemu-aarch64; do
  command -v $tool >/dev/null || skip "no $tool (./bootstrap.sh --with qemu installs it)"
done

# Made once, under another name until it is whole.
if [ ! -d "$sysroot" ]; then
  command -v mmdebstrap >/dev/null || skip "no mmdebstrap (./bootstrap.sh --with qemu installs it)"
  mirror=$(awk '/^URIs:/ {print $2; exit}' /etc/apt/sources.list.d/debian.sources 2>/dev/null ||
           awk '/^deb / && $2 ~ /^http/ {print $2; exit}' /etc/apt/sources.list 2>/dev/null || true)
  packages=libc6-dev,libstdc++-12-dev,libhwy-dev,libtbb-dev,libhwloc-dev,nlohmann-json3-dev
  packages=$packages,libfmt-dev,libcli11-dev,libgtest-dev,libgmock-dev,zlib1g-dev
  mkdir -p "$build"
  rm -rf "$sysroot.partial"
  mmdebstrap --quiet --arch=arm64 --variant=extract --include=$packages \
      bookworm "$sysroot.partial" $mirror >"$build/mmdebstrap.log" 2>&1 ||
    skip "mmdebstrap could not make an arm64 root: $(tail -n 1 "$build/mmdebstrap.log")"
  mv "$sysroot.partial" "$sysroot"
fi

cmake -S "$source" -B "$build/aarch64" -G Ninja \
    -DCMAKE_TOOLCHAIN_FILE="$source/tests/qemu/aarch64.cmake" -DHEED_SYSROOT="$sysroot" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DHEED_BUILD_TUNE=OFF -DHEED_BUILD_BENCH=OFF \
    -DHEED_BUILD_EXAMPLES=OFF -DHEED_IMAGES=OFF
cmake --build "$build/aarch64" --target $test_programs

# At once: an emulator runs a program on one core.
children=
for bytes in 16 32 64; do
  (
    for program in $test_programs; do
      echo "== $program, NEON and SVE of $((bytes * 8)) bits"
      qemu-aarch64 -L "$sysroot" -cpu max,sve-default-vector-length=$bytes \
          "$build/aarch64/$program" --quick
    done
  ) >"$build/sve$bytes.log" 2>&1 &
  children="$children $!"
done
failed=0
for child in $children; do
  wait "$child" || failed=1
done
cat "$build"/sve16.log "$build"/sve32.log "$build"/sve64.log
exit $failed
