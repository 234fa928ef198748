"""A loop of multiply-adds in PTX, which the driver compiles: one thread of it keeps one SM busy, a full grid keeps all."""

from typing import Final

NAME: Final = "multiply_add"
TARGETS: Final = ("sm_52", "sm_75", "sm_90")
"""PTX for an older target runs on every newer GPU; the first that the driver's compiler still takes is used."""
ONE_THREAD_ROUNDS: Final = 2_000_000
"""8 dependent multiply-adds of 4 cycles a round: some 40 ms of a 1.9 GHz SM."""
FULL_ROUNDS: Final = 300_000
"""With 16 blocks of 256 threads an SM, about as long."""

_SOURCE: Final = """
.version 6.0
.target {target}
.address_size 64

.visible .entry {name}(.param .u64 results, .param .u32 rounds)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [results];
    ld.param.u32 %r1, [rounds];
    mov.u32 %r2, 0;
    mov.f32 %f1, 0f3F800000;
    mov.f32 %f2, 0f3F7FFFEF;
    mov.f32 %f3, 0f3727C5AC;
    mov.u32 %r3, %tid.x;
    mov.u32 %r4, %ctaid.x;
    mov.u32 %r5, %ntid.x;
    mad.lo.s32 %r6, %r4, %r5, %r3;
AGAIN:
{work}
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, %r1;
    @%p1 bra AGAIN;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r6, 4;
    add.s64 %rd4, %rd2, %rd3;
    st.global.f32 [%rd4], %f1;
    ret;
}}
"""


def source(target: str) -> bytes:
    """The text for one target, ended as the driver wants it. The result is stored, so that no compiler leaves the loop out."""
    work = "\n".join(["    fma.rn.f32 %f1, %f1, %f2, %f3;"] * 8)
    return _SOURCE.format(target=target, name=NAME, work=work).encode("ascii") + b"\0"
