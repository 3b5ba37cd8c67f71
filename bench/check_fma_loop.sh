#!/bin/sh
# Checks in the machine code that the FMA probe does what it counts: its loop must hold as many
# independent vfmadd on ymm or zmm registers as the source has chains, for every target with AVX2 or
# AVX-512. A compiler that merges equal chains would make the peak, by which everything is divided,
# too large without any other sign.
#
# Usage: check_fma_loop.sh OBJDUMP PROGRAM PROBE_SOURCE
# Exits 0 (right), 1 (wrong) or 77 (skipped; says why).
objdump=$1
program=$2
source=$3

skip() {
  echo "SKIPPED: $1"
  exit 77
}

command -v "$objdump" >/dev/null 2>&1 || skip "no objdump (Debian package binutils)"
LC_ALL=C "$objdump" -f "$program" | grep -q 'x86-64' || skip "not an x86-64 program"
LC_ALL=C "$objdump" -t "$program" | grep -q __asan_init &&
  skip "the address sanitizer keeps registers in memory; other builds are checked"

chains=$(sed -n 's/^constexpr size_t kChains = \([0-9]*\);.*/\1/p' "$source")
if [ -z "$chains" ]; then
  echo "no kChains in $source"
  exit 1
fi

LC_ALL=C "$objdump" -d -C --no-show-raw-insn "$program" | awk -v chains="$chains" '
  # The loop is the shortest backward jump whose range holds a vfmadd; its accumulators are the
  # registers that are written (the last operand).
  function judge(    i, j, target, from, length_of, best, fma, seen, accumulators, parts, n) {
    best = 0
    for (i = 1; i <= count; ++i) {
      if (text[i] !~ /^j/) continue
      target = text[i]
      sub(/^j[a-z]+ +/, "", target)
      sub(/ .*/, "", target)
      if (!(target in at) || at[target] > i) continue
      fma = 0
      for (j = at[target]; j <= i; ++j) if (text[j] ~ /^vfn?madd.*[yz]mm/) ++fma
      length_of = i - at[target] + 1
      if (fma > 0 && (best == 0 || length_of < best)) {
        best = length_of
        from = at[target]
      }
    }
    if (best == 0) {
      print name ": no loop with vfmadd on ymm or zmm registers"
      failed = 1
      return
    }
    fma = accumulators = 0
    for (j = from; j < from + best; ++j) {
      if (text[j] !~ /^vfn?madd.*[yz]mm/) continue
      ++fma
      n = split(text[j], parts, /[, ]+/)
      if (!((name, parts[n]) in seen)) ++accumulators
      seen[name, parts[n]] = 1
    }
    print name ": " fma " vfmadd, " accumulators " accumulators in the loop, " chains " chains"
    if (accumulators < chains || chains < 8) failed = 1
    ++judged
  }
  /^[0-9a-f]+ <.*>:$/ {
    if (inside) judge()
    inside = 0
    # AVX2, AVX3, AVX3_DL, AVX3_ZEN4, AVX3_SPR, AVX10_2: the targets with fused multiply-add.
    if ($0 ~ /N_AVX[0-9A-Z_]*::PeakFma\(/) {
      inside = 1
      count = 0
      split("", text)
      split("", at)
      name = $0
      sub(/^[^<]*</, "", name)
      sub(/\(.*/, "", name)
    }
    next
  }
  inside && /^ *[0-9a-f]+:/ {
    ++count
    address = $1
    sub(/:$/, "", address)
    at[address] = count
    text[count] = $0
    sub(/^ *[0-9a-f]+:[ \t]*/, "", text[count])
  }
  END {
    if (inside) judge()
    if (failed) exit 1
    if (!judged) exit 77
  }'
result=$?
[ $result -eq 77 ] && skip "no FMA probe for AVX2 or AVX-512 in $program"
exit $result
