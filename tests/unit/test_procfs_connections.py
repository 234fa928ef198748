"""Who is connected into a pod's network namespace, from tables of text. Real namespaces are in tests/node."""

from pathlib import Path

import pytest

from steps.adapters.procfs.pods import in_a_pod
from steps.contracts.document import State
from steps.contracts.node_facts import Scan
from tests.unit.proc_tree import ProcTree, proc_tree

POD = "/kubepods/burstable/pod11112222-3333-4444-5555-666677778888/" + "ab" * 32
HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def row(local: str, remote: str, state: str, inode: int = 1) -> str:
    return f"   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1 0 20 4 0 10 -1\n"


ANY4, POD4, USER4, LOCAL4 = "00000000", "0302000A", "0902000A", "0100007F"
V4_IN_6 = "0000000000000000FFFF0000"
LISTENING = row(f"{ANY4}:22B8", f"{ANY4}:0000", "0A")
LISTENING6 = row(f"{'0' * 32}:22B8", f"{'0' * 32}:0000", "0A")


def tree_with(tmp_path: Path, tcp: str, tcp6: str | None = "") -> ProcTree:
    tree = proc_tree(tmp_path)
    tree.process(1, net=1)
    folder = tree.process(70, cgroup=f"0::{POD}\n", net=2)
    (folder / "net").mkdir()
    (folder / "net" / "tcp").write_text(HEADER + tcp)
    if tcp6 is not None:
        (folder / "net" / "tcp6").write_text(HEADER + tcp6)
    return tree


def established(tree: ProcTree) -> int | None:
    sockets = tree.reader().scan([], (), Scan.FULL).sockets.known()
    assert sockets is not None
    (one,) = sockets
    assert one.cgroup == (f"0::{POD}",)
    return one.established.known()


NOBODY = "sockets: used 9\nTCP: inuse 0 orphan 0 tw 0 alloc 4 mem 0\nUDP: inuse 3 mem 0\n"
CONNECTED = LISTENING + row(f"{POD4}:22B8", f"{USER4}:C001", "01")


@pytest.mark.parametrize(
    "counts", [NOBODY.replace("inuse 0", "inuse 2"), NOBODY.replace("TCP:", "XYZ:"), "sockets: used 9\nTCP:", ""]
)
def test_a_table_is_read_unless_its_count_says_that_it_is_empty(tmp_path: Path, counts: str) -> None:
    tree = tree_with(tmp_path, CONNECTED)
    (tree.root / "70" / "net" / "sockstat").write_text(counts)
    assert established(tree) == 1


def test_a_namespace_without_tcp_sockets_has_no_connections_and_needs_no_table(tmp_path: Path) -> None:
    tree = tree_with(tmp_path, "", tcp6=None)
    (tree.root / "70" / "net" / "tcp").unlink()
    (tree.root / "70" / "net" / "sockstat").write_text(NOBODY)
    (tree.root / "70" / "net" / "sockstat6").write_text("TCP6: inuse 0\nUDP6: inuse 1\n")
    assert established(tree) == 0


def test_one_protocol_without_sockets_hides_nothing_of_the_other(tmp_path: Path) -> None:
    tree = tree_with(tmp_path, "", LISTENING6 + row(f"{V4_IN_6}{POD4}:22B8", f"{V4_IN_6}{USER4}:C001", "01"))
    (tree.root / "70" / "net" / "sockstat").write_text(NOBODY)
    assert established(tree) == 1


@pytest.mark.parametrize(
    ("tcp", "tcp6", "count"),
    [
        (LISTENING, "", 0),
        (LISTENING + row(f"{POD4}:22B8", f"{USER4}:C001", "01"), "", 1),
        ("", LISTENING6 + row(f"{V4_IN_6}{POD4}:22B8", f"{V4_IN_6}{USER4}:C001", "01"), 1),
        (LISTENING + row(f"{POD4}:22B8", f"{USER4}:C001", "08"), "", 0),  # CLOSE_WAIT of a closed tab
        (row(f"{POD4}:C001", f"{USER4}:01BB", "01"), "", 0),  # opened by the pod itself
        (LISTENING + row(f"{LOCAL4}:22B8", f"{LOCAL4}:C001", "01"), "", 1),  # a port-forward: its client end is nobody's here
        (LISTENING + "garbage\n  0: xx:yy\n", "", 0),
    ],
)
def test_accepted_connections_are_counted(tmp_path: Path, tcp: str, tcp6: str, count: int) -> None:
    assert established(tree_with(tmp_path, tcp, tcp6)) == count


def test_a_node_without_ipv6_has_a_count(tmp_path: Path) -> None:
    assert established(tree_with(tmp_path, LISTENING, None)) == 0


@pytest.mark.parametrize("server", [LOCAL4, V4_IN_6 + LOCAL4], ids=["v4", "dual-stack"])
@pytest.mark.parametrize("own", [True, False])
def test_a_pod_that_talks_to_itself_is_nobody_only_if_the_client_end_is_its_own(tmp_path: Path, own: bool, server: str) -> None:
    socket = tmp_path / "socket"
    socket.touch()
    inode = socket.stat().st_ino
    client = row(f"{LOCAL4}:C001", f"{LOCAL4}:22B8", "01", inode)
    tree = tree_with(tmp_path, client, LISTENING6 + row(f"{server}:22B8", f"{server}:C001", "01", 5))
    if own:
        (tree.root / "70" / "fd" / "9").symlink_to(socket)
    assert established(tree) == (0 if own else 1)


def test_without_the_hosts_namespace_connections_are_unknown(tmp_path: Path) -> None:
    tree = tree_with(tmp_path, LISTENING)
    (tree.root / "1" / "ns" / "net").unlink()
    assert tree.reader().scan([], (), Scan.FULL).sockets.state is State.ERROR


def test_the_hosts_namespace_is_also_known_by_the_kernels_thread(tmp_path: Path) -> None:
    tree = tree_with(tmp_path, LISTENING)
    tree.process(2, net=1)
    (tree.root / "1" / "ns" / "net").unlink()
    assert established(tree) == 0


def test_a_namespace_of_the_host_and_one_of_no_pod_are_left_out(tmp_path: Path) -> None:
    tree = tree_with(tmp_path, LISTENING)
    tree.process(71, cgroup=f"0::{POD}\n", net=1)
    tree.process(72, cgroup="0::/system.slice/sandboxed.service\n", net=3)
    assert established(tree) == 0


@pytest.mark.parametrize(
    ("line", "yes"),
    [
        ("0::/kubepods.slice/kubepods-pod11112222_3333_4444_5555_666677778888.slice/cri-containerd-ab.scope", True),
        ("0::/kubepods/pod11112222-3333-4444-5555-666677778888/ab", True),
        ("0::/kubepods/besteffort/pod0123456789abcdef0123456789abcdef/ab", True),
        ("1:cpu:/machine.slice/libpod-" + "ab" * 32 + ".scope", False),
        ("0::/user.slice/11112222-3333-4444-5555-666677778888", False),
        ("0::/system.slice/podman.service", False),
        ("0::/", False),
    ],
)
def test_a_pods_cgroup_is_recognised_in_either_drivers_spelling(line: str, yes: bool) -> None:
    assert in_a_pod([line]) is yes
