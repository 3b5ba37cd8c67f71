#!/bin/sh
# What a compiler made of the loops in which heed spends its time: multiply-adds, vector loads,
# stores and spills per iteration, from the machine code of every target with AVX2 or AVX-512.
# A spill is a vector register that the loop writes to the stack: ten in 48 multiply-adds cost 11 to
# 19 %, without any other sign, so a loop with more than one in eight fails.
#
# Usage: hot_loops.sh OBJDUMP PROGRAM
# Exits 0 (few spills), 1 (many, or a loop is missing) or 77 (skipped; says why).
objdump=$1
program=$2

skip() {
  echo "SKIPPED: $1"
  exit 77
}

command -v "$objdump" >/dev/null 2>&1 || skip "no objdump (Debian package binutils)"
LC_ALL=C "$objdump" -f "$program" | grep -q 'x86-64' || skip "not an x86-64 program"
LC_ALL=C "$objdump" -t "$program" | grep -q __asan_init &&
  skip "the address sanitizer keeps registers in memory; other builds are checked"

LC_ALL=C "$objdump" -d -C --no-show-raw-insn "$program" | awk '
  BEGIN {
    # Functions whose innermost loop with most multiply-adds is hot.
    hot["ScoreStep("]
    hot["BlendTile<6, 2>("]
    hot["BlendTile<4, 3>("]
    hot["BlendTile<6, 4>("]
    hot["WeighStep<2,"]
    hot["RunTile<6ul, float>("]
    hot["RunTile<8ul, float>("]
    split("float heed::F16 heed::BF16", types, " ")
    for (i in types) {
      hot["ScoreRows<1, " types[i] ">("]
      hot["ScoreRows<4, " types[i] ">("]
      hot["ScoreRows<8, " types[i] ">("]
      hot["DecodeBlend<1, 8, " types[i] ">("]
      hot["DecodeBlend<4, 2, " types[i] ">("]
      hot["DecodeBlend<4, 4, " types[i] ">("]
      hot["DecodeBlend<8, 2, " types[i] ">("]
    }
    printf "%-58s %5s %5s %5s %6s %6s\n", "loop", "fma", "loads", "all", "stores", "spills"
  }
  function target_of(line) {
    sub(/^j[a-z]+ +/, "", line)
    sub(/ .*/, "", line)
    return line in at ? at[line] : 0
  }
  function judge(    i, j, from, inner, fma, loops, best, first, last, loads, stores, spills, total,
                 line) {
    # Loops with multiply-adds; of these the innermost, of these the one with most. A jump back
    # into the middle of a loop that ends before it comes from rare code of that loop.
    loops = best = 0
    for (i = 1; i <= count; ++i) {
      if (text[i] !~ /^j/) continue
      from = target_of(text[i])
      if (from == 0 || from > i) continue
      fma = 0
      for (j = from; j < i; ++j) if (text[j] ~ /^vfn?m(add|sub)/) ++fma
      if (fma == 0) continue
      ++loops
      begin_of[loops] = from
      end_of[loops] = i
      fma_of[loops] = fma
    }
    for (i = 1; i <= loops; ++i) {
      inner = 1
      for (j = 1; j <= loops; ++j) {
        if (j != i && begin_of[j] >= begin_of[i] && end_of[j] < end_of[i]) inner = 0
        if (begin_of[j] < begin_of[i] && begin_of[i] <= end_of[j] && end_of[j] < end_of[i]) {
          inner = 0
        }
      }
      if (inner && fma_of[i] > best) {
        best = fma_of[i]
        first = begin_of[i]
        last = end_of[i]
      }
    }
    if (best == 0) {
      print name ": no loop with multiply-adds"
      failed = 1
      return
    }
    loads = stores = spills = 0
    total = last - first + 1
    for (j = first; j <= last; ++j) {
      line = text[j]
      if (line !~ /[xyz]mm/) continue
      if (line ~ /^v.*[xyz]mm[0-9]+,-?(0x[0-9a-f]+)?\(/) {
        ++stores
        if (line ~ /\(%r[sb]p\)$/) ++spills
      } else if (line ~ /\(/) {
        ++loads
      }
    }
    printf "%-58s %5d %5d %5d %6d %6d\n", name, best, loads, total, stores, spills
    if (8 * spills > best) failed = 1
    ++judged
  }
  /^[0-9a-f]+ <.*>:$/ {
    if (inside) judge()
    inside = 0
    if ($0 ~ /N_AVX[0-9A-Z_]*::/) {
      for (f in hot) {
        if (index($0, "::" f) == 0) continue
        inside = 1
        count = 0
        split("", text)
        split("", at)
        name = $0
        sub(/^[^<]*</, "", name)
        sub(/^void /, "", name)
        sub(/\(.*/, "", name)
        sub(/, hwy::.*/, ">", name)
        if ($0 ~ /clone/) name = name " [clone]"
      }
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
[ $result -eq 77 ] && skip "no kernels for AVX2 or AVX-512 in $program"
exit $result
