#!/bin/sh
# preStop hook of scenarios 3 and 4: ends every process of this container that has a GPU open. SIGTERM first, at most PRESTOP_WAIT_S
# (20 s unless the pod says otherwise) for them to go, then SIGKILL. The kubelet throws away what an exec hook prints, so the
# words go to PID 1's output, which is the pod log.
exec >> /proc/1/fd/1 2>&1
wait_s="${PRESTOP_WAIT_S:-20}"

say() { printf '{"at": "%s", "event": "prestop.%s", "pids": "%s"}\n' "$(date -u +%Y-%m-%dT%H:%M:%S.%3N+00:00)" "$1" "$2"; }

# PIDs that have a /dev/nvidia<number> open, by one walk: on a busy node a process for every link takes longer than the wait. A process
# that ends while we look is no GPU process any more.
gpu_pids() {
  find /proc/[0-9]*/fd -maxdepth 1 -ignore_readdir_race -lname '/dev/nvidia[0-9]*' | cut -d / -f 3 | sort -nu | tr '\n' ' '
}
now_ms() { date +%s%3N; }

pids="$(gpu_pids)"
say began "$pids"
for pid in $pids; do kill -TERM "$pid"; done
until_ms=$(($(now_ms) + wait_s * 1000))
left="$pids"
while [ -n "$left" ] && [ "$(now_ms)" -lt "$until_ms" ]; do
  sleep 0.2
  left="$(gpu_pids)"
done
if [ -n "$left" ]; then
  say killing "$left"
  for pid in $left; do kill -KILL "$pid"; done
fi
say done "$left"
