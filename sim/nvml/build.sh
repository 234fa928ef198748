#!/bin/sh
# Builds the simulated NVML library. usage: build.sh [OUT], default build/sim/libnvidia-ml.so.1 of this checkout. Needs gcc and Linux.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../../build/sim/libnvidia-ml.so.1}
command -v "${CC:-gcc}" >/dev/null || { echo "sim/nvml/build.sh: the NVML shim needs ${CC:-gcc}, which is not installed (Debian: apt-get install gcc libc6-dev)" >&2; exit 1; }
mkdir -p "$(dirname "$out")"
"${CC:-gcc}" -std=gnu11 -O2 -Wall -Wextra -Werror -fPIC -fvisibility=hidden -shared -pthread \
    -Wl,-soname,libnvidia-ml.so.1 -Wl,-z,defs -o "$out.new" "$here"/*.c
mv "$out.new" "$out"
