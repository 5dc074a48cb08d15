"""Memory moves that numba does not offer: a block copy, a prefetch, aligned arrays.

``copy_words`` moves int32 words between arrays (the C library's memcpy: the fastest copy of a long
id list); ``prefetch`` asks for a cache line ahead of its use, which is what hides the misses of a
probe into an index larger than the caches. Both are no-ops in meaning: un-jitted they are plain
Python with the same effect.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from limen.kernels.compiled import leaf

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

LINE_WORDS = 32  # two cache lines: the unit that adjacent-line prefetch brings in
PUT_WORDS = 16  # how far `put` may write past the end of what it was asked to write


if config.DISABLE_JIT:

    def copy_words(dst: I32, d: int, src: I32, s: int, n: int) -> None:
        dst[d : d + n] = src[s : s + n]

    def copy_either(dst: I32, d: int, mem: I32, own: I32, address: int, n: int) -> None:
        base = len(mem)
        src, s = (mem, address) if address < base else (own, address - base)
        dst[d : d + n] = src[s : s + n]

    def prefetch(array: I32 | I64, i: int) -> None:
        pass

else:

    @intrinsic  # type: ignore[untyped-decorator]
    def copy_words(typingctx: Any, dst: Any, d: Any, src: Any, s: Any, n: Any) -> Any:
        """dst[d:d+n] = src[s:s+n]; the two must not overlap."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            to = context.make_array(signature.args[0])(context, builder, args[0])
            of = context.make_array(signature.args[2])(context, builder, args[2])
            to_ptr = builder.gep(to.data, [args[1]])
            of_ptr = builder.gep(of.data, [args[3]])
            cgutils.raw_memcpy(builder, to_ptr, of_ptr, args[4], 4)
            return context.get_dummy_value()

        return types.void(dst, types.int64, src, types.int64, types.int64), codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def copy_either(
        typingctx: Any, dst: Any, d: Any, mem: Any, own: Any, address: Any, n: Any
    ) -> Any:
        """Copy n words of the two memories' common address space: a choice, but no branch."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            to = context.make_array(signature.args[0])(context, builder, args[0])
            mem = context.make_array(signature.args[2])(context, builder, args[2])
            own = context.make_array(signature.args[3])(context, builder, args[3])
            behind = builder.sub(args[4], mem.nitems)
            of_ptr = builder.select(
                builder.icmp_signed("<", behind, behind.type(0)),
                builder.gep(mem.data, [args[4]]),
                builder.gep(own.data, [behind]),
            )
            cgutils.raw_memcpy(builder, builder.gep(to.data, [args[1]]), of_ptr, args[5], 4)
            return context.get_dummy_value()

        sig = types.void(dst, types.int64, mem, own, types.int64, types.int64)
        return sig, codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def prefetch(typingctx: Any, array: Any, i: Any) -> Any:
        """Bring the cache line of the array's i-th element (in memory order) closer."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            line = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
            word = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [line.type, word, word, word])
            call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            builder.call(call, [line, word(0), word(3), word(1)])  # read, keep, data cache
            return context.get_dummy_value()

        return types.void(array, types.int64), codegen


@leaf
def put(out: I32, o: int, mem: I32, own: I32, address: int, n: int) -> None:
    """out[o:o+n] = the n words at the address, possibly writing up to PUT_WORDS more behind them.

    Short lists are the rule, and a copy of fixed length has no branch to mispredict.
    """
    copy_either(out, o, mem, own, address, PUT_WORDS)
    if n > PUT_WORDS:
        if n <= 8 * PUT_WORDS:
            i = PUT_WORDS
            while i < n:
                copy_either(out, o + i, mem, own, address + i, PUT_WORDS)
                i += PUT_WORDS
        else:
            copy_either(out, o, mem, own, address, n)


def aligned_words(n: int) -> I32:
    """A zeroed int32 array of n words that begins on a two-line boundary."""
    raw = np.zeros(n + LINE_WORDS, np.int32)
    skip = (-raw.ctypes.data // 4) % LINE_WORDS
    return raw[skip : skip + n]
