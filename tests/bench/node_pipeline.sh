#!/bin/bash
# The kind of shell pipeline that gpu-reclaim replaces: who holds the GPUs of this node, and whose pod is it.
# usage: node_pipeline.sh fair|old DEV ANSWERS STANDIN SMI_COST CRICTL_COST
#   fair: one fuser over all device files, one grep over all cgroups. old: one fuser a device, one pipeline a process.
#   ANSWERS: a folder with what nvidia-smi prints ("listed", lines of "pid, MiB") and crictl inspect ("<container id>").
#   STANDIN: the program that prints these at the cost of the real one, given as "CPU_MS WAIT_MS". Each container is
#   inspected once in both styles.
set -u
style=$1 dev=$2 answers=$3 standin=$4 smi_cost=$5 crictl_cost=$6
nvidia_smi() { "$standin" $smi_cost "$answers/listed"; }
crictl_inspect() { "$standin" $crictl_cost "$answers/$1"; }

declare -A container_of name_of
nvidia_smi --query-gpu=index,uuid,memory.used,utilization.gpu >/dev/null
pids=$(nvidia_smi --query-compute-apps=pid,used_memory | cut -d, -f1)
if [ "$style" = fair ]; then
    pids+=" $(fuser -v "$dev"/nvidia* 2>/dev/null)"
else
    for node in "$dev"/nvidia*; do pids+=" $(fuser -v "$node" 2>/dev/null)"; done
fi
pids=$(printf '%s\n' $pids | sort -un)

if [ "$style" = fair ]; then
    while IFS=/: read -r _ _ pid _ id; do container_of[$pid]=$id; done \
        < <(grep -HoE '[0-9a-f]{64}' $(printf '/proc/%s/cgroup\n' $pids) 2>/dev/null)
else
    for pid in $pids; do container_of[$pid]=$(cat "/proc/$pid/cgroup" 2>/dev/null | grep -oE '[0-9a-f]{64}' | head -1); done
fi
for pid in $pids; do
    id=${container_of[$pid]:-none}
    if [ -z "${name_of[$id]:-}" ] && [ -e "$answers/$id" ]; then name_of[$id]=$(crictl_inspect "$id"); fi
    echo "$pid ${name_of[$id]:-host}"
done
