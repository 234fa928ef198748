"""`python -m tests.cluster.lab build|images|up|down|status|kubectl`: the test cluster by hand."""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence

from steps.contracts.errors import ReclaimError
from tests.cluster.lab.debian import install_missing, require_root_on_debian
from tests.cluster.lab.ending import left_over
from tests.cluster.lab.gobuild import build, missing
from tests.cluster.lab.images import make_images
from tests.cluster.lab.lab import own
from tests.cluster.lab.network import DEFAULT_NAME, NAME_VARIABLE, NetworkNamespace
from tests.cluster.lab.places import places
from tests.cluster.lab.progress import timed
from tests.cluster.lab.record import read_record
from tests.cluster.lab.starting import start, stop


def main(argv: Sequence[str]) -> int:
    """Run one command. Returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.lab", description=__doc__)
    parser.add_argument("--netns", default=os.environ.get(NAME_VARIABLE, DEFAULT_NAME), help="name of the network namespace")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("build", help="build Kubernetes, etcd and Argo from source; about 25 minutes the first time")
    commands.add_parser("images", help="make all images")
    up = commands.add_parser("up", help="start the cluster and leave it running")
    up.add_argument("--events", action="store_true", help="with NATS and Argo Events")
    commands.add_parser("down", help="end the cluster")
    commands.add_parser("status", help="say what is built and what runs")
    commands.add_parser("kubectl", help="run kubectl against the running cluster; everything after this word goes to it")
    ours, theirs = _split(argv)
    try:
        return _run(parser.parse_args(ours), theirs)
    except ReclaimError as error:
        print(f"lab: {error}", file=sys.stderr)
        return int(error.exit_code)


def _split(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Our words, up to `kubectl` where it stands, and those after it."""
    at = argv.index("kubectl") + 1 if "kubectl" in argv else len(argv)
    return argv[:at], argv[at:]


def _run(arguments: argparse.Namespace, kubectl_words: Sequence[str]) -> int:
    where, network = places(), NetworkNamespace(arguments.netns)
    match arguments.command:
        case "build":
            require_root_on_debian()
            install_missing()
            build(where)
        case "images":
            make_images(where)
        case "up":
            lab = start(where, network, make_images(where), events=arguments.events, owner=None)
            print(f"export GPU_RECLAIM_TEST_KUBECONFIG={lab.kubeconfig}")
        case "down":
            with timed("ending the cluster"):
                stop(where)
        case "status":
            lacking, record = missing(where), read_record(where)
            print(f"built: {'all' if not lacking else 'all but ' + ', '.join(lacking)}")
            print("\n".join(left_over(where, NetworkNamespace(record.network))) if record else "no cluster")
        case "kubectl":
            return subprocess.run(own(where, network).kubectl.argv(*kubectl_words), check=False).returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
