# SPDX-License-Identifier: MIT
"""The functions of libggu that this package calls, with their types: ggu.h and ggu_quant.h by ctypes."""
import ctypes
import ctypes.util
import os
from ctypes import (CDLL, POINTER, Structure, byref, c_bool, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32,
                    c_uint64, c_void_p, string_at)

__all__ = ["Error", "Str", "StrView", "c_uint64", "check", "lib", "new", "status_name", "string_at"]


class ErrorInfo(Structure):
    _fields_ = [("code", c_int), ("rule", c_int), ("source", c_uint32), ("offset", c_uint64), ("sys_errno", c_int),
                ("where", c_char*128), ("file", c_char*128), ("what", c_char*160)]


class Str(Structure):           # to pass
    _fields_ = [("p", c_char_p), ("n", c_size_t)]


class StrView(Structure):       # to look at: may hold NUL
    _fields_ = [("p", c_void_p), ("n", c_size_t)]


class TypeInfo(Structure):
    _fields_ = [("name", c_char_p), ("id", c_uint32), ("block_weights", c_uint32), ("block_bytes", c_uint32), ("kind", c_int)]


class TensorInfo(Structure):
    _fields_ = [("name", c_char_p), ("name_bytes", c_uint32), ("n_dims", c_uint32), ("ne", c_uint64*4), ("type", c_uint32),
                ("source", c_uint32), ("offset", c_uint64), ("bytes", c_uint64), ("entry", c_uint64)]


_E, _P, _S, _Z = POINTER(ErrorInfo), c_void_p, c_char_p, c_size_t
_functions = {
    "ggu_version": (_S, []), "ggu_status_name": (_S, [c_int]), "ggu_type_info": (POINTER(TypeInfo), [c_uint32]),
    "ggu_type_end": (c_uint32, []), "ggu_type_find": (POINTER(TypeInfo), [_S]),
    "ggu_open": (c_int, [POINTER(_P), _S, _E]), "ggu_close": (None, [_P]), "ggu_file_meta": (_P, [_P]),
    "ggu_file_n_tensors": (_Z, [_P]), "ggu_file_tensor": (POINTER(TensorInfo), [_P, _Z]),
    "ggu_read": (c_int, [_P, POINTER(TensorInfo), c_uint64, _P, _Z, _E]),
    "ggu_meta_new": (_P, []), "ggu_meta_free": (None, [_P]), "ggu_meta_count": (_Z, [_P]), "ggu_meta_at": (_P, [_P, _Z]),
    "ggu_kv_key": (StrView, [_P]), "ggu_kv_type": (c_int, [_P]), "ggu_kv_item_type": (c_int, [_P]), "ggu_kv_n": (_Z, [_P]),
    "ggu_kv_str": (c_bool, [_P, _Z, POINTER(StrView)]), "ggu_kv_sub": (_P, [_P, _Z]), "ggu_kv_data": (_P, [_P]),
    "ggu_meta_set_uint": (c_int, [_P, _S, c_int, c_uint64]), "ggu_meta_set_int": (c_int, [_P, _S, c_int, c_int64]),
    "ggu_meta_set_float": (c_int, [_P, _S, c_int, c_double]), "ggu_meta_set_bool": (c_int, [_P, _S, c_bool]),
    "ggu_meta_set_str": (c_int, [_P, _S, _S, _Z]), "ggu_meta_set_array": (c_int, [_P, _S, c_int, _P, _Z]),
    "ggu_meta_set_strs": (c_int, [_P, _S, POINTER(Str), _Z]),
    "ggu_writer_new": (c_int, [POINTER(_P), _P, _E]),
    "ggu_writer_add": (c_int, [_P, _S, c_uint32, POINTER(c_uint64), c_uint32, _E]),
    "ggu_writer_begin": (c_int, [_P, c_int, _E]), "ggu_writer_data": (c_int, [_P, _P, _Z, _E]),
    "ggu_writer_end": (c_int, [_P, _E]), "ggu_writer_free": (None, [_P]),
    "ggu_decode": (c_int, [c_uint32, _P, _P, _Z, _E]),
    "ggu_encode": (c_int, [c_uint32, _P, _P, _Z, _Z, c_int, _P, _E]),
}


def _load():
    path = os.environ.get("GGU_LIBRARY") or ctypes.util.find_library("ggu")
    if not path:
        raise ImportError("libggu is not installed; $GGU_LIBRARY may name it")
    handle = CDLL(path)
    for name, (result, arguments) in _functions.items():
        f = getattr(handle, name)
        f.restype, f.argtypes = result, arguments
    return handle


lib = _load()


def status_name(status):
    return lib.ggu_status_name(status).decode()


class Error(Exception):
    """status: the number of enum ggu_status; offset: the byte of the file, or None."""

    def __init__(self, status, text, offset=None):
        super().__init__(text)
        self.status, self.offset = status, offset


def _raise(status, e):
    offset = None if e.offset == 2**64 - 1 else e.offset
    parts = [f"byte {offset}" if offset is not None else "", e.file.decode("utf-8", "replace"), e.where.decode("utf-8", "replace"),
             e.what.decode("utf-8", "replace") or status_name(status), os.strerror(e.sys_errno) if e.sys_errno else ""]
    raise Error(status, ": ".join(p for p in parts if p), offset)


def check(function, *arguments):
    """Calls a function whose last argument is a struct ggu_error, and raises Error if it fails."""
    e = ErrorInfo()
    status = function(*arguments, byref(e))
    if status:
        _raise(status, e)


def new(function, *arguments):
    """The same for a function that makes something."""
    e, made = ErrorInfo(), c_void_p()
    status = function(byref(made), *arguments, byref(e))
    if status:
        _raise(status, e)
    return made
