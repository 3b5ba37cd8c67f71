#!/bin/sh
# The standard suite on this machine: all of results/bench/<machine key>/<date>-<commit>/, summary and
# figures included. Nothing else may run meanwhile.
#
# usage: bench/suite.sh [--resume] [--publish] [BUILD [SECONDS]]
#   --resume   go on in the last folder of this commit: what is there is not measured again
#   --publish  bring the tables of README.md and results/README.md up to date with it
#   BUILD      folder of a release build (build/release)
#   SECONDS    time limit of a row (5): some 200 rows, so that 5 make about seventeen minutes
#
# Needs python3-matplotlib for the figures; without it says so and leaves them out.
set -eu
cd "$(dirname "$0")/.."
resume= publish=
while :; do
  case "${1:-}" in
    --resume) resume=yes ;;
    --publish) publish=--publish ;;
    *) break ;;
  esac
  shift
done
build=${1:-build/release}
seconds=${2:-5}
bench=$build/heed_bench
export HEED_TUNE_PATH=results/tuning

key=$("$build/heed" info | sed -n 's/^machine key *//p')
[ -n "$key" ] || { echo "suite.sh: $build/heed info names no machine key" >&2; exit 1; }
commit=$("$bench" --heed_version | sed "s/.* //")
folder=
if [ -n "$resume" ]; then
  folder=$(ls -d "results/bench/$key"/*-"$commit" 2>/dev/null | tail -n 1)
fi
folder=${folder:-results/bench/$key/$(date -u +%Y-%m-%d)-$commit}
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

# $1 = what is measured, $2 = its files but for their ends; then the command. The text is moved to its
# place last: a part that was interrupted has none.
part() {
  echo "== $1"
  result=$folder/$2
  shift 2
  if [ -n "$resume" ] && [ -s "$result.md" ]; then
    echo "$result.md is there"
    return
  fi
  "$bench" --heed_seconds "$seconds" --heed_rounds 25 --heed_json "$result.json" "$@" > "$result.part"
  mv "$result.part" "$result.md"
}

if [ -x /usr/bin/python3 ] && ! python3 -c 'import matplotlib' 2>/dev/null; then
  python=/usr/bin/python3
else
  python=python3
fi
"$python" bench/summary.py --begin "$folder"
part "the core shapes" table --heed_table
part "time against length" lengths --heed_table --heed_shapes "$lengths"
part "decoding against the length of the cache" caches --heed_table --heed_shapes "$caches"
part "where the time goes" stages --heed_stages
part "what options cost" pairs --heed_pairs options --heed_threads 1
part "other libraries" peers --heed_pairs peers
if "$python" -c 'import matplotlib' 2>/dev/null; then
  "$python" bench/figures.py "$folder"
else
  echo "no figures: no Python with matplotlib (Debian: python3-matplotlib)"
fi
"$python" bench/summary.py $publish "$folder"
