#!/bin/sh
# No system call in plan creation after the first plan, which loads the records.
# usage: plan_system_calls.sh PROGRAM
set -eu
if ! command -v strace >/dev/null 2>&1; then
  echo "skipped: no strace"
  exit 77
fi
if grep -q __asan_init "$1"; then
  echo "skipped: the address sanitizer maps memory as it pleases"
  exit 77
fi
trace=$(mktemp)
trap 'rm -f "$trace"' EXIT
if ! strace -f -o "$trace" true 2>/dev/null; then
  echo "skipped: strace may not trace here"
  exit 77
fi
strace -f -o "$trace" "$1"
between=$(sed -n '/heed-mark-begin/,/heed-mark-end/p' "$trace" | grep -v heed-mark || true)
if ! grep -q heed-mark-end "$trace"; then
  echo "the marks are not in the trace"
  exit 1
fi
if [ -n "$between" ]; then
  echo "system calls while plans were made:"
  echo "$between"
  exit 1
fi
echo "300 plans, no system call"
