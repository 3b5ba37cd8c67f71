#!/bin/sh
# The standard suite on this machine: everything below results/bench/<machine key>/, figures included.
# Nothing else may run meanwhile.
#
# usage: bench/suite.sh [BUILD [SECONDS]]
#   BUILD    folder of a release build (build/release)
#   SECONDS  time limit of a row (5): some 100 rows, so that 5 make about eight minutes
#
# Needs python3-matplotlib for the figures; without it says so and leaves them out.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/release}
seconds=${2:-5}
bench=$build/heed_bench
export HEED_TUNE_PATH=results/tuning

key=$("$build/heed" info | sed -n 's/^machine key *//p')
[ -n "$key" ] || { echo "suite.sh: $build/heed info names no machine key" >&2; exit 1; }
folder=results/bench/$key
mkdir -p "$folder"

# $1 = letter of the length, $2 = the rest of the problem string with % for it, then lengths.
shapes() {
  pattern=$1
  shift
  list=
  for length; do
    list=$list${list:+,}$(echo "$pattern" | sed "s/%/$length/g")
  done
  echo "$list"
}
lengths=$(shapes b1_hq12_hkv12_q%_k%_d64_causal_f32 128 256 512 1024 2048 4096 8192)
caches=$(shapes b1_hq32_hkv8_q1_k%_d128_f32 128 512 2048 8192 32768 65536)
caches=$caches,$(shapes b1_hq32_hkv8_q1_k%_d128_bf16 128 512 2048 8192 32768 65536)

echo "== the core shapes"
"$bench" --heed_table --heed_seconds "$seconds" --heed_rounds 25 --heed_results results
echo "== time against length"
"$bench" --heed_table --heed_seconds "$seconds" --heed_rounds 15 --heed_shapes "$lengths" \
    --heed_json "$folder/lengths.json"
echo "== decoding against the length of the cache"
"$bench" --heed_table --heed_seconds "$seconds" --heed_rounds 15 --heed_shapes "$caches" \
    --heed_json "$folder/caches.json"
echo "== what options cost"
"$bench" --heed_pairs options --heed_threads 1 --heed_seconds "$seconds" --heed_rounds 15 \
    --heed_results results
if python3 -c 'import matplotlib' 2>/dev/null; then
  python3 bench/figures.py "$folder"
elif /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
  /usr/bin/python3 bench/figures.py "$folder"
else
  echo "no figures: no Python with matplotlib (Debian: python3-matplotlib)"
fi
