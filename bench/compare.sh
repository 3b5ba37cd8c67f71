#!/bin/sh
# Is HEAD slower than BASE? Builds what is not built yet and lets both libraries take turns on ten
# headline shapes (heed_bench --heed_compare). Nothing else may run meanwhile.
#
# usage: bench/compare.sh BASE HEAD [OPTION of heed_bench]...
#   BASE, HEAD   a commit of this repository, or the path of a libheed.so
#
# Exit code 3 if HEAD is surely more than 5 % slower on a shape, twice. Commits are built below
# build/compare and kept; the measuring program is that of build/release.
set -eu
[ $# -ge 2 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
cd "$(dirname "$0")/.."
bench=build/release/heed_bench
[ -x $bench ] || { echo "compare.sh: no $bench; cmake --preset release && cmake --build --preset release" >&2; exit 1; }

# Prints the path of what $1 names.
library() {
  if [ -f "$1" ]; then
    realpath "$1"
    return
  fi
  commit=$(git rev-parse --verify --quiet "$1^{commit}") || {
    echo "compare.sh: $1 is neither a file nor a commit" >&2
    return 1
  }
  folder=build/compare/$commit
  if [ ! -f "$folder/build/libheed.so" ]; then
    echo "== building $1" >&2
    rm -rf "$folder"
    mkdir -p "$folder"
    git archive "$commit" | tar -x -C "$folder"
    cmake -S "$folder" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DHEED_BUILD_TUNE=OFF \
        -DHEED_BUILD_BENCH=OFF -DHEED_BUILD_TESTS=OFF -DHEED_BUILD_EXAMPLES=OFF \
        -DBUILD_SHARED_LIBS=ON >&2
    cmake --build "$folder/build" >&2
  fi
  realpath "$folder/build/libheed.so"
}

base=$(library "$1")
head=$(library "$2")
shift 2
exec $bench --heed_compare "$base,$head" "$@"
