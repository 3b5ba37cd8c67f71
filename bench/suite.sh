#!/bin/sh
# The standard suite on this machine: everything below results/bench/<machine key>/, figures included.
# Nothing else may run meanwhile.
#
# usage: bench/suite.sh [--resume] [BUILD [SECONDS]]
#   --resume  leave out the parts whose results are of this commit already
#   BUILD     folder of a release build (build/release)
#   SECONDS   time limit of a row (5): some 140 rows, so that 5 make about twelve minutes
#
# Needs python3-matplotlib for the figures; without it says so and leaves them out.
set -eu
cd "$(dirname "$0")/.."
resume=
if [ "${1:-}" = --resume ]; then
  resume=yes
  shift
fi
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

commit=$("$bench" --heed_version | sed "s/.* //")

# $1 = what is measured, $2 = its JSON file; then the command.
part() {
  echo "== $1"
  result=$folder/$2
  shift 2
  if [ -n "$resume" ] && grep -q "\"commit\": \"$commit\"" "$result" 2>/dev/null; then
    echo "$result is of this commit"
    return
  fi
  "$bench" --heed_seconds "$seconds" --heed_rounds 25 "$@"
}

part "the core shapes" table.json --heed_table --heed_results results
part "time against length" lengths.json \
    --heed_table --heed_shapes "$lengths" --heed_json "$folder/lengths.json"
part "decoding against the length of the cache" caches.json \
    --heed_table --heed_shapes "$caches" --heed_json "$folder/caches.json"
part "what options cost" pairs.json --heed_pairs options --heed_threads 1 --heed_results results
part "other libraries" peers.json --heed_pairs peers --heed_results results
if python3 -c 'import matplotlib' 2>/dev/null; then
  python3 bench/figures.py "$folder"
elif /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
  /usr/bin/python3 bench/figures.py "$folder"
else
  echo "no figures: no Python with matplotlib (Debian: python3-matplotlib)"
fi
