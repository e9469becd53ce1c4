# SPDX-License-Identifier: MIT
"""bindings.py COMPARE FILE - parts of bindings.t; exits 1 with a message at what differs."""
import os
import sys

import ggu
import gguf
import numpy as np


def same(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return a == b or (a != a and b != b)
    if isinstance(a, (list, np.ndarray)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return a == b


def compare(path):
    theirs = gguf.GGUFReader(path)
    with ggu.File(path) as f:
        fields = {k: v for k, v in theirs.fields.items() if not k.startswith("GGUF.")}
        assert list(fields) == list(f.metadata), "other keys"
        for key, field in fields.items():
            value = f.metadata[key]
            assert same(value.tolist() if isinstance(value, np.ndarray) else value, field.contents()), f"{key} differs"
        assert [t.name for t in theirs.tensors] == list(f), "other tensors"
        compared = 0
        for t in theirs.tensors:
            mine = f[t.name]
            assert list(reversed(t.shape.tolist())) == list(mine.shape), f"{t.name}: another shape"
            assert t.tensor_type.name.lower() == mine.type.lower(), f"{t.name}: another type"
            assert np.array_equal(np.atleast_1d(t.data).view(np.uint8).reshape(-1), mine.blocks().reshape(-1)), f"{t.name}: other bytes"
            try:
                x = gguf.dequantize(t.data, t.tensor_type)
            except NotImplementedError:
                continue
            y = mine.array()
            assert np.array_equal(x.reshape(y.shape).astype(np.float32), y.astype(np.float32), equal_nan=True), f"{t.name}: other weights"
            compared += 1
        assert compared or not theirs.tensors, "no tensor could be compared"


def roundtrip(path):
    metadata = {"general.architecture": "llama", "n": ggu.Value("u16", 65535), "i": -7, "big": 2**64 - 1, "x": 1.5, "yes": True,
                "f": ggu.Value("f32", 0.1), "words": ["a", "", "\u00e9\0b"], "ids": np.arange(5, dtype=np.uint32),
                "flags": np.array([True, False]), "list": [1, 2, 3], "large": 1e30,
                "endless": float("-inf"), "none": ggu.Value("f32", float("nan"))}
    x = np.linspace(-1, 1, 4*512, dtype=np.float32).reshape(4, 512)
    with ggu.File(path) as f:
        name = next(iter(f))
        tensors = {"plain": x, "half": x.astype(np.float16), "q": ggu.quantize(x, "Q6_K"), "scalar": np.float32(3),
                   "ids": np.arange(7, dtype=np.int32), "copied": f[name]}
        ggu.write("out.gguf", metadata, tensors)
        assert not [n for n in os.listdir() if n.startswith(".out.gguf.")], "a temporary was left"
        compare("out.gguf")
        with ggu.File("out.gguf") as g:
            m = g.metadata
            assert m["n"] == 65535 and m.types["n"] == "u16" and m["i"] == -7 and m["big"] == 2**64 - 1 and m["yes"] is True
            assert m["words"] == metadata["words"] and m["list"].tolist() == [1, 2, 3] and m.types["list"] == "i64[]"
            assert m["large"] == 1e30 and m["endless"] == float("-inf") and np.isnan(m["none"]) and m.types["none"] == "f32"
            assert m["f"] == float(np.float32(0.1)) and m["flags"].tolist() == [True, False]
            assert np.array_equal(g["plain"].array(), x) and g["half"].array().dtype == np.float16
            assert g["q"].shape == (4, 512) and np.abs(g["q"].array() - x).max() < 0.05
            assert g["scalar"].shape == () and g["scalar"].array() == 3
            assert np.array_equal(g["copied"].array(), f[name].array())
    try:
        g["plain"].array()
    except ValueError:
        return
    assert False, "a closed file was read"


def quantizes(path):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((3, 2, 512), np.float32)
    weights = np.linspace(0.1, 2, 512, dtype=np.float32)
    compared = 0
    for type in ggu.types():                    # decoded as gguf does, where both can
        try:
            q = ggu.quantize(x, type, weights)
            theirs = gguf.dequantize(q.blocks, gguf.GGMLQuantizationType[type.upper()])
        except (ggu.Error, KeyError, NotImplementedError, AttributeError):
            continue
        assert q.blocks.shape[:2] == (3, 2)
        if type not in ("f32", "f16", "f64"):
            assert np.array_equal(theirs, ggu.dequantize(q)), f"{type}: decoded differently"
            compared += 1
    assert compared >= 20, f"only {compared} types were compared"
    assert np.array_equal(ggu.quantize(x, "q8_0").blocks, gguf.quantize(x, gguf.GGMLQuantizationType.Q8_0)), "q8_0"
    plain, weighed = (ggu.dequantize(ggu.quantize(x, "q3_K", w)) for w in (None, weights))
    assert (weights*(weighed - x)**2).sum() < (weights*(plain - x)**2).sum(), "importances are of no use"
    assert "q4_K" in ggu.types() and "iq1_m" in ggu.types()


def refuses(path):
    x = np.zeros((2, 100), np.float32)
    bad = [(ValueError, lambda: ggu.quantize(x, "q4_K")), (ValueError, lambda: ggu.quantize(x, "q9")),
           (ValueError, lambda: ggu.quantize(x[:, :32], "q4_0", np.ones(31))), (ggu.Error, lambda: ggu.quantize(x, "i8")),
           (ggu.Error, lambda: ggu.File("no/such")), (ggu.Error, lambda: ggu.write("bad.gguf", {"": 1}, {})),
           (ggu.Error, lambda: ggu.write("bad.gguf", {"n": ggu.Value("u8", 256)}, {})),
           (OverflowError, lambda: ggu.write("bad.gguf", {"n": ggu.Value("u8", -1)}, {})),
           (ValueError, lambda: ggu.write("bad.gguf", {}, {"c": np.zeros(3, complex)})),
           (ValueError, lambda: ggu.write("bad.gguf", {"a\0b": 1}, {})), (ValueError, lambda: ggu.File(path + "\0x")),
           (ValueError, lambda: ggu.write("bad.gguf", {}, {"a\0b": np.zeros(3, np.float32)})),
           (ValueError, lambda: ggu.dequantize(ggu.Quantized("q8_0", (64,), np.zeros(34, np.uint8))))]
    for error, call in bad:
        try:
            call()
        except error:
            continue
        assert False, "not refused"
    assert not os.path.exists("bad.gguf"), "something was written"
    open("cut.gguf", "wb").write(open(path, "rb").read()[:100])
    try:
        ggu.File("cut.gguf")
    except ggu.Error as e:
        assert e.offset is not None and e.status and "byte" in str(e)
        return
    assert False, "a cut file was opened"


try:
    {"compare": compare, "roundtrip": roundtrip, "quantizes": quantizes, "refuses": refuses}[sys.argv[1]](sys.argv[2])
except AssertionError as e:
    sys.exit(f"{sys.argv[2]}: {e}")
