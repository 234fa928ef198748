"""The policy's cap, shared by the shards of one sweep. Pure.

Shards judge side by side and know nothing of each other, so each gets a part of the cap beforehand, and the parts add up to it:
no race and no message between judges can exceed it. The price: a part that one shard does not use is lost to this sweep.
"""

import hashlib


def part_of(cap: int, shard: int, shards: int, run: str) -> int:
    """How many sessions this shard (0 <= shard < shards) may stop. What does not divide evenly goes to shards that change from
    run to run, so that with a cap of 1 every shard gets its turn; a second try of a run gets the same part."""
    first = int.from_bytes(hashlib.sha256(run.encode()).digest()[:8]) % shards
    return cap // shards + int((shard - first) % shards < cap % shards)
