#!/bin/sh
# Installs what building and testing heed needs on Debian 12. Says nothing and needs no root when
# nothing is missing.
set -eu

usage() {
  cat <<'USAGE'
usage: ./bootstrap.sh [--with qemu|peers]... [--dry-run] [--help]

Installs the missing ones of the Debian packages that heed is built, tuned and tested with.
Where nothing is missing it does nothing; where something is, it needs root or sudo.

  --with qemu   also what runs the tests for Arm (NEON, SVE) under an emulator
  --with peers  also the libraries that heed_bench compares heed with, and what draws figures
  --dry-run     print what would be installed, and install nothing
  --help        this text
USAGE
}

packages="g++ cmake ninja-build pkg-config libhwy-dev libtbb-dev libhwloc-dev
          nlohmann-json3-dev libfmt-dev libcli11-dev libcairo2-dev libbenchmark-dev libgtest-dev
          libgmock-dev python3-jsonschema python3-numpy python3-pytest strace zlib1g-dev"
qemu_packages="g++-12-aarch64-linux-gnu qemu-user mmdebstrap"
peer_packages="libopenblas0-pthread libdnnl-dev python3-matplotlib"

dry_run=no
while [ $# -gt 0 ]; do
  case $1 in
    --with)
      case ${2:-} in
        qemu) packages="$packages $qemu_packages" ;;
        peers) packages="$packages $peer_packages" ;;
        *)
          echo "bootstrap.sh: --with takes qemu or peers, not '${2:-}'" >&2
          exit 2
          ;;
      esac
      shift
      ;;
    --dry-run) dry_run=yes ;;
    --help | -h)
      usage
      exit 0
      ;;
    *)
      echo "bootstrap.sh: unknown argument '$1' (try --help)" >&2
      exit 2
      ;;
  esac
  shift
done

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
  echo "bootstrap.sh: this is not Debian; heed needs what Debian calls:" $packages >&2
  exit 1
fi

missing=""
for package in $packages; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  # A package of several architectures prints its status once for each.
  case $status in
    installed*) ;;
    *) missing="$missing $package" ;;
  esac
done

[ -n "$missing" ] || exit 0
if [ "$dry_run" = yes ]; then
  echo "bootstrap.sh would install:$missing"
  exit 0
fi

as_root=""
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "bootstrap.sh: neither root nor sudo, so it cannot install:$missing" >&2
    exit 1
  fi
  as_root=sudo
fi

# env because sudo does not pass variables on. Recommended packages are of no use to a build.
apt_get() {
  $as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C \
    apt-get -qq -o Dpkg::Use-Pty=0 "$@" </dev/null
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "bootstrap.sh: installing$missing"
if ! { apt_get update && apt_get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
  cat "$log" >&2
  echo "bootstrap.sh: could not install:$missing" >&2
  exit 1
fi
