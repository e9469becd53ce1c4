# SPDX-License-Identifier: MIT
"""GGUF files as numpy arrays, by libggu.

    with ggu.File("model.gguf") as f:
        f.metadata["general.architecture"]      # "llama"
        t = f["blk.0.attn_q.weight"]            # a Tensor: name, type, shape
        t.array()                               # decoded, float32 where the type is quantized
        t.blocks()                              # as it lies in the file, uint8 [..., bytes of a row]
    q = ggu.quantize(weights, "q4_K", importance=None)
    ggu.write("out.gguf", {"general.architecture": "llama"}, {"blk.0.attn_q.weight": q, "norm": norms})

Shapes are numpy's: the last dimension varies fastest. The library is $GGU_LIBRARY, or the system's libggu."""
import os
import tempfile
from collections.abc import Mapping

import numpy as np

from . import _lib
from ._lib import Error, check, lib

__version__ = "0.1.0"
__all__ = ["Error", "File", "Quantized", "Tensor", "Value", "dequantize", "quantize", "types", "write"]

_KV = ("u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "str", "arr", "u64", "i64", "f64")
_KV_DTYPE = {"u8": "u1", "i8": "i1", "u16": "u2", "i16": "i2", "u32": "u4", "i32": "i4", "f32": "f4", "bool": "?",
             "u64": "u8", "i64": "i8", "f64": "f8"}
_PLAIN = {"f32": "<f4", "f16": "<f2", "f64": "<f8", "i8": "<i1", "i16": "<i2", "i32": "<i4", "i64": "<i8"}


def types():
    """Names of all tensor types."""
    infos = (lib.ggu_type_info(i) for i in range(lib.ggu_type_end()))
    return [i.contents.name.decode() for i in infos if i]


def _type(name):
    info = lib.ggu_type_find(name.encode())
    if not info:
        raise ValueError(f"no tensor type {name!r}")
    return info.contents


class Quantized:
    """Blocks of a type: blocks is uint8 [..., bytes of a row], shape is that of the weights."""

    def __init__(self, type, shape, blocks):
        self.type, self.shape, self.blocks = type, tuple(shape), blocks


def dequantize(q):
    """The weights of a Quantized as float32."""
    info = _type(q.type)
    blocks = np.ascontiguousarray(q.blocks, np.uint8)
    n = int(np.prod(q.shape, dtype=np.int64))
    if blocks.nbytes != n//info.block_weights*info.block_bytes:
        raise ValueError(f"{blocks.nbytes} bytes are not {n} weights as {q.type}")
    out = np.empty(q.shape, np.float32)
    check(lib.ggu_decode, info.id, blocks.ctypes.data, out.ctypes.data, n)
    return out


def quantize(array, type, importance=None, effort=0):
    """Rows of an array, along its last dimension, as blocks of a type."""
    info = _type(type)
    x = np.ascontiguousarray(array, np.float32)
    if not x.ndim:
        raise ValueError("a number has no rows")
    cols = x.shape[-1]
    rows = x.size//cols if cols else 0
    if cols % info.block_weights:
        raise ValueError(f"rows of {cols} weights are not whole blocks of {info.block_weights} ({type})")
    if importance is not None:
        importance = np.ascontiguousarray(importance, np.float32)
        if importance.shape != (cols,):
            raise ValueError(f"importances of {importance.shape} for rows of {cols}")
    out = np.empty(x.shape[:-1] + (cols//info.block_weights*info.block_bytes,), np.uint8)
    check(lib.ggu_encode, info.id, x.ctypes.data, importance.ctypes.data if importance is not None else None, rows, cols, effort,
          out.ctypes.data)
    return Quantized(info.name.decode(), x.shape, out)


class Tensor:
    def __init__(self, file, raw):
        self._file, self._raw = file, raw
        t = raw.contents
        self.name = t.name.decode("utf-8", "surrogateescape")
        self.type = lib.ggu_type_info(t.type).contents.name.decode()
        self.shape = tuple(reversed(t.ne[:t.n_dims]))
        self.nbytes = t.bytes

    def blocks(self):
        info = _type(self.type)
        row = self.shape[-1]//info.block_weights*info.block_bytes if self.shape else self.nbytes
        out = np.empty(self.shape[:-1] + (row,), np.uint8)
        check(lib.ggu_read, self._file._open(), self._raw, 0, out.ctypes.data, self.nbytes)
        return out

    def array(self):
        if self.type in _PLAIN:
            return self.blocks().reshape(-1).view(_PLAIN[self.type]).reshape(self.shape)
        return dequantize(Quantized(self.type, self.shape, self.blocks()))

    def __repr__(self):
        return f"<{self.name} {self.type} {list(self.shape)}>"


class _Metadata(Mapping):
    def __init__(self, meta):
        self._kv, self.types = {}, {}
        for i in range(lib.ggu_meta_count(meta)):
            kv = lib.ggu_meta_at(meta, i)
            key = _text(lib.ggu_kv_key(kv))
            self._kv[key] = _value(kv)
            kind, item = _KV[lib.ggu_kv_type(kv)], _KV[lib.ggu_kv_item_type(kv)]
            self.types[key] = kind if kind != "arr" else f"{item}[]"

    def __getitem__(self, key):
        return self._kv[key]

    def __iter__(self):
        return iter(self._kv)

    def __len__(self):
        return len(self._kv)


def _text(s):
    return _lib.string_at(s.p, s.n).decode("utf-8", "surrogateescape")


def _value(kv):
    n, item, array = lib.ggu_kv_n(kv), _KV[lib.ggu_kv_item_type(kv)], _KV[lib.ggu_kv_type(kv)] == "arr"
    if item == "str":
        s = _lib.StrView()
        out = [_text(s) for i in range(n) if lib.ggu_kv_str(kv, i, s)]
    elif item == "arr":
        return [_value(lib.ggu_kv_sub(kv, i)) for i in range(n)]
    else:
        dtype = np.dtype(_KV_DTYPE[item])
        out = np.frombuffer(_lib.string_at(lib.ggu_kv_data(kv), n*dtype.itemsize), dtype)
    return out if array else out[0] if item == "str" else out[0].item()


def _name(b):
    """For a function that takes it to end at a NUL."""
    if b"\0" in b:
        raise ValueError("a name with a null character")
    return b


class File(Mapping):
    """An open GGUF: a mapping of names to tensors, in the order of the table, and .metadata."""

    def __init__(self, path):
        self._f = _lib.new(lib.ggu_open, _name(os.fsencode(path)))
        meta = lib.ggu_file_meta(self._f)
        self.metadata = _Metadata(meta)
        self._t = {}
        for i in range(lib.ggu_file_n_tensors(self._f)):
            t = Tensor(self, lib.ggu_file_tensor(self._f, i))
            self._t[t.name] = t

    def _open(self):
        if not self._f:
            raise ValueError("the file is closed")
        return self._f

    def close(self):
        if self._f:
            lib.ggu_close(self._f)
        self._f = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_f", None):
            self.close()

    def __getitem__(self, name):
        return self._t[name]

    def __iter__(self):
        return iter(self._t)

    def __len__(self):
        return len(self._t)


# ---- writing ----

class Value:
    """A number of a metadata type: Value("u16", 7). Without it int is i64 or u64, float f64; arrays go by their dtype."""

    def __init__(self, type, value):
        if type not in _KV_DTYPE:
            raise ValueError(f"no metadata type {type!r}")
        self.type, self.value = type, value


def _set(meta, key, v):
    k = _name(key.encode("utf-8", "surrogateescape"))
    if isinstance(v, (bool, np.bool_)):
        v = Value("bool", bool(v))
    elif isinstance(v, (int, np.integer)):
        v = Value("i64" if v < 1 << 63 else "u64", int(v))
    elif isinstance(v, (float, np.floating)):
        v = Value("f64", float(v))
    if isinstance(v, Value):
        name = {"b": "bool", "f": "float", "i": "int", "u": "uint"}[v.type[0]]
        if name == "bool":
            return lib.ggu_meta_set_bool(meta, k, v.value)
        if name == "uint" and v.value < 0 or name != "float" and not -1 << 63 <= v.value < 1 << 64:
            raise OverflowError(f"{key}: {v.value} as {v.type}")
        return getattr(lib, "ggu_meta_set_" + name)(meta, k, _KV.index(v.type), v.value)
    if isinstance(v, (str, bytes)):
        b = v.encode("utf-8", "surrogateescape") if isinstance(v, str) else v
        return lib.ggu_meta_set_str(meta, k, b, len(b))
    if isinstance(v, np.ndarray):
        kinds = [t for t, d in _KV_DTYPE.items() if np.dtype(d) == v.dtype]
        if v.ndim != 1 or not kinds:
            raise ValueError(f"{key}: an array of {v.dtype} with {v.ndim} dimensions")
        v = np.ascontiguousarray(v)
        return lib.ggu_meta_set_array(meta, k, _KV.index(kinds[0]), v.ctypes.data, v.size)
    if isinstance(v, list) and all(isinstance(s, str) for s in v):
        items = [s.encode("utf-8", "surrogateescape") for s in v]
        strs = (_lib.Str*len(items))(*(_lib.Str(s, len(s)) for s in items))
        return lib.ggu_meta_set_strs(meta, k, strs, len(items))
    if isinstance(v, list) and v and all(isinstance(x, (int, float)) for x in v):
        return _set(meta, key, np.array(v))
    raise ValueError(f"{key}: {v!r} is nothing that metadata holds")


def _tensor(v):
    """Type and contiguous data of what is to be written."""
    if isinstance(v, Tensor):
        v = Quantized(v.type, v.shape, v.blocks())
    if isinstance(v, Quantized):
        return v.type, v.shape, np.ascontiguousarray(v.blocks, np.uint8)
    v = np.asarray(v)
    kinds = [t for t, d in _PLAIN.items() if np.dtype(d) == v.dtype]
    if not kinds:
        raise ValueError(f"no tensor type for {v.dtype}")
    return kinds[0], v.shape, np.ascontiguousarray(v)


def _emit(w, tensors, fd):
    data = []
    for name, v in tensors.items():
        type, shape, array = _tensor(v)
        ne = (_lib.c_uint64*max(len(shape), 1))(*reversed(shape))
        check(lib.ggu_writer_add, w, _name(name.encode("utf-8", "surrogateescape")), len(shape), ne, _type(type).id)
        data.append(array)
    check(lib.ggu_writer_begin, w, fd)
    for array in data:
        check(lib.ggu_writer_data, w, array.ctypes.data, array.nbytes)
    check(lib.ggu_writer_end, w)


def write(path, metadata, tensors):
    """A file of metadata (numbers, Value, str, lists of str, 1-d arrays) and tensors (arrays, Quantized, Tensor)."""
    meta = lib.ggu_meta_new()
    if not meta:
        raise MemoryError
    w = None
    folder = os.path.dirname(os.path.abspath(path))
    try:
        for key, v in metadata.items():
            s = _set(meta, key, v)
            if s:
                raise Error(s, f"{key}: {_lib.status_name(s)}")
        w = _lib.new(lib.ggu_writer_new, meta)
        with tempfile.NamedTemporaryFile(dir=folder, prefix="." + os.path.basename(path) + ".", delete=False) as out:
            try:
                _emit(w, tensors, out.fileno())
                os.fsync(out.fileno())
                mask = os.umask(0)
                os.umask(mask)
                os.fchmod(out.fileno(), 0o666 & ~mask)
                os.replace(out.name, path)
            except BaseException:
                os.unlink(out.name)
                raise
    finally:
        if w:
            lib.ggu_writer_free(w)
        lib.ggu_meta_free(meta)
