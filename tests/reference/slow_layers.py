# SPDX-License-Identifier: MIT
"""The layers of layers.yaml in plain Python, number by number.

slow_layers.py model      writes the model to standard output
slow_layers.py logits     float32 logits of the ids on standard input
"""
import array, math, struct, sys

WIDE, WORDS, POSITIONS, HEADS, KV, DIM, INNER, EXPERTS, SMALL = 32, 50, 64, 4, 2, 8, 40, 4, 24
LOGITS = 44                     # the last words have none, as those that stand for images
EPS = array.array("f", [1e-5])[0]
NORM = {"tok_norm.weight": [WIDE], "tok_norm.bias": [WIDE], "out_norm.weight": [WIDE], "out_norm.bias": [WIDE]}
SHAPES = {"token_embd.weight": [WIDE, WORDS], "token_types.weight": [WIDE, 2],
          "position_embd.weight": [WIDE, POSITIONS], "output.weight": [WIDE, LOGITS], **NORM}


def values(i):
    return DIM if i == 3 else DIM//2


def layer(i):
    mixed = HEADS*values(i)
    shapes = {"q.weight": [WIDE, HEADS*DIM], "k.weight": [WIDE, KV*DIM], "k.bias": [KV*DIM],
              "o.weight": [mixed, WIDE], "o.bias": [WIDE], "f_norm.weight": [WIDE], "f_gate.weight": [WIDE, INNER],
              "f_up.weight": [WIDE, INNER], "f_down.weight": [INNER, WIDE]}
    if i != 2:
        shapes["a_norm.weight"] = [WIDE]
    if i != 3:
        shapes["v.weight"] = [WIDE, KV*values(i)]
    if i in (1, 2):
        shapes["g.weight"] = [WIDE, mixed if i == 1 else HEADS]
    if i in (1, 3):
        shapes.update({"p_up.weight": [WIDE, 24], "p_down.weight": [24, WIDE]})
    shapes.update([{"qn.weight": [HEADS*DIM], "kn.weight": [DIM], "on.weight": [mixed]},
                   {"a_post.weight": [WIDE], "a_post.bias": [WIDE], "p_norm.weight": [WIDE]},
                   {"sinks": [HEADS], "bq.weight": [WIDE, HEADS*DIM], "bo.weight": [HEADS*DIM//2, WIDE],
                    "on.weight": [DIM//2], "f_inner.weight": [INNER], "f_inner.bias": [INNER],
                    "router.weight": [WIDE, EXPERTS], "e_gate.weight": [WIDE, SMALL, EXPERTS],
                    "e_up.weight": [WIDE, SMALL, EXPERTS], "e_down.weight": [SMALL, WIDE, EXPERTS]},
                   {"a_res.weight": [WIDE], "qn.weight": [DIM], "kn.weight": [DIM], "kn.bias": [DIM]}][i])
    return shapes


for i in range(4):
    SHAPES.update(("blk.%d.%s" % (i, name), shape) for name, shape in layer(i).items())


def drawn():
    """the same numbers each time: vectors around 1, matrices that leave the size of a row as it is"""
    seed, tensors = 1, {}
    for name, shape in SHAPES.items():
        x = array.array("f")
        for _ in range(math.prod(shape)):
            seed = (seed*6364136223846793005 + 1442695040888963407) % 2**64
            u = (seed >> 40)/2**23 - 1
            x.append(u*math.sqrt(3/shape[0]) if len(shape) > 1 else u + 1 if "norm.weight" in name else u)
        tensors[name] = x
    return tensors


def rows(tensors):
    return {name: x.tolist() if len(SHAPES[name]) == 1 else
            [x[j:j + SHAPES[name][0]].tolist() for j in range(0, len(x), SHAPES[name][0])] for name, x in tensors.items()}


def model(tensors):
    """a GGUF of version 3: metadata, the table of tensors, data at multiples of 32 bytes"""
    text = lambda s: struct.pack("<Q", len(s)) + s.encode()
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 3) + text("general.architecture") + struct.pack("<I", 8)
    head += text("layers") + text("layers.block_count") + struct.pack("<II", 4, 4)
    head += text("layers.epsilon") + struct.pack("<If", 6, EPS)
    data = b""
    for name, x in tensors.items():
        shape = SHAPES[name]
        head += text(name) + struct.pack("<I%dQIQ" % len(shape), len(shape), *shape, 0, len(data))
        data += x.tobytes() + bytes(-4*len(x) % 32)
    sys.stdout.buffer.write(head + bytes(-len(head) % 32) + data)


def rms(x, w=None, b=None):
    scale = 1/math.sqrt(sum(a*a for a in x)/len(x) + EPS)
    x = [a*scale for a in x]
    if w:
        x = [a*c for a, c in zip(x, w)]
    return [a + c for a, c in zip(x, b)] if b else x


def centred(x, w=None, b=None):
    mean = sum(x)/len(x)
    return rms([a - mean for a in x], w, b)


def sigmoid(a):
    return 1/(1 + math.exp(-a))


def gelu(a):
    return 0.5*a*(1 + math.erf(a/math.sqrt(2)))


def gelu_tanh(a):
    return 0.5*a*(1 + math.tanh(math.sqrt(2/math.pi)*(a + 0.044715*a**3)))


def turned(x, at, half, dims, base):
    x = list(x)
    for j in range(dims//2):
        p, q = (j, j + dims//2) if half else (2*j, 2*j + 1)
        c, s = math.cos(at*base**(-2*j/dims)), math.sin(at*base**(-2*j/dims))
        x[p], x[q] = x[p]*c - x[q]*s, x[p]*s + x[q]*c
    return x


def heads(x, n):
    return [x[j:j + len(x)//n] for j in range(0, len(x), len(x)//n)]


def attend(q, k, v, scale, sees, cap=None, slopes=None, sinks=None):
    """q, k and v by row and head"""
    out = []
    for i in range(len(q)):
        seen, row = [j for j in range(i + 1) if sees(i, j)], []
        for h in range(HEADS):
            s = [scale*sum(a*b for a, b in zip(q[i][h], k[j][h*KV//HEADS])) for j in seen]
            if cap:
                s = [cap*math.tanh(a/cap) for a in s]
            if slopes:
                s = [a + slopes[h]*(j - i) for a, j in zip(s, seen)]
            w = [math.exp(a) for a in s]
            total = sum(w) + (math.exp(sinks[h]) if sinks else 0)
            row += [sum(a*v[j][h*KV//HEADS][d] for a, j in zip(w, seen))/total for d in range(len(v[0][0]))]
        out.append(row)
    return out


class Layer:
    def __init__(self, tensors, i):
        self.i, self.t = i, lambda name: tensors.get("blk.%d.%s" % (i, name))

    def times(self, name, x):
        y, bias = [sum(a*b for a, b in zip(row, x)) for row in self.t(name + ".weight")], self.t(name + ".bias")
        return [a + b for a, b in zip(y, bias)] if bias else y

    def keys(self, rows):
        """queries, keys and values of rows, as they are attended to"""
        i, q, k, v = self.i, [], [], []
        for at, x in enumerate(rows):
            a, b = self.times("q", x), self.times("k", x)
            c = self.times("v", x) if i < 3 else b
            if i == 2:
                a, b, c = ([min(max(z, -0.8), 0.8) for z in y] for y in (a, b, c))
            if i == 0:
                a = rms(a, self.t("qn.weight"))
            a, b, c = heads(a, HEADS), heads(b, KV), heads(c, KV)
            if i == 0:
                b = [rms(y, self.t("kn.weight")) for y in b]
            if i < 2:
                c = [rms(y) for y in c]
            if i != 1:
                a, b = ([turned(y, at, i == 0, 4 if i == 2 else DIM, 500) for y in z] for z in (a, b))
            if i == 0:
                a = [[z*(1 + 0.3*math.log(1 + (at + 1)//4)) for z in y] for y in a]
            if i == 3:
                a = [rms(y, self.t("qn.weight")) for y in a]
                b = [centred(y, self.t("kn.weight"), self.t("kn.bias")) for y in b]
            q.append(a), k.append(b), v.append(c)
        return q, k, v

    def mix(self, rows, kept):
        i = self.i
        q, k, v = self.keys(rows)
        kept.append((k, v))
        sees = [lambda t, p: t - p < 5, lambda t, p: t//7 == p//7, lambda t, p: True, lambda t, p: True][i]
        slopes = [2**(-8*(h + 1)/HEADS) for h in range(HEADS)] if i == 1 else None
        out = attend(q, k, v, 0.7 if i == 2 else DIM**-0.5, sees, 2 if i == 1 else None, slopes, self.t("sinks"))
        if i == 1:
            out = [[a*sigmoid(b) for a, b in zip(row, self.times("g", x))] for row, x in zip(out, rows)]
        if i == 2:
            out = [sum(([a*sigmoid(b) for a in head] for head, b in zip(heads(row, HEADS), self.times("g", x))), [])
                   for row, x in zip(out, rows)]
            out = [sum((rms(head, self.t("on.weight")) for head in heads(row, HEADS)), []) for row in out]
        if i == 0:
            out = [rms(row, self.t("on.weight")) for row in out]
        return [self.times("o", row) for row in out]

    def beside(self, normed, x):
        if self.i == 1:
            normed = centred(x, self.t("p_norm.weight"))
        return self.times("p_down", [gelu(a) for a in self.times("p_up", normed)])

    def borrow(self, x, keys):
        rows = [centred(row) for row in x]
        q = [[turned(y, at, True, DIM, 100) for y in heads(self.times("bq", row), HEADS)] for at, row in enumerate(rows)]
        return [self.times("bo", row) for row in attend(q, *keys, DIM**-0.5, lambda t, p: True)]

    def feed(self, x):
        x, i = rms(x, self.t("f_norm.weight")), self.i
        gate, up = self.times("f_gate", x), self.times("f_up", x)
        if i == 3:
            gate, up = [min(a, 0.3) for a in gate], [min(max(a, -0.3), 0.3) + 1 for a in up]
        act = [lambda a: a*sigmoid(1.7*a), lambda a: max(a, 0)**2, gelu_tanh, lambda a: max(a, 0)][i]
        inner = [act(a)*b for a, b in zip(gate, up)]
        if i == 2:
            inner = centred(inner, self.t("f_inner.weight"), self.t("f_inner.bias"))
        return self.times("f_down", inner)

    def choose(self, x):
        x, y = rms(x), [0]*WIDE
        scores = [sigmoid(a) for a in self.times("router", x)]
        of = lambda name, m: heads(self.t(name + ".weight"), EXPERTS)[m]
        for m in sorted(range(EXPERTS), key=lambda m: -scores[m])[:2]:
            part = [a*scores[m] for a in x]
            gate, up = ([sum(a*b for a, b in zip(row, part)) for row in of(name, m)] for name in ("e_gate", "e_up"))
            inner = [a*sigmoid(a)*b for a, b in zip(gate, up)]
            y = plus(y, [sum(a*b for a, b in zip(row, inner)) for row in of("e_down", m)])
        return y

    def run(self, x, kept):
        i, t = self.i, self.t
        normed = x if i == 2 else [rms(row, t("a_norm.weight")) for row in x]
        made = self.mix(normed, kept)
        if i in (0, 2):
            made = [rms(row) for row in made]
        if i in (1, 3):
            made = [plus(row, self.beside(n, r)) for row, n, r in zip(made, normed, x)]
        if i == 1:
            made = [[a/2 for a in centred(row, t("a_post.weight"), t("a_post.bias"))] for row in made]
        x = [plus(a, b) for a, b in zip(x, made)]
        if i == 3:
            x = [centred(row, t("a_res.weight")) for row in x]
        if i == 2:
            x = [plus(a, b) for a, b in zip(x, self.borrow(x, kept[1]))]
        x = [plus(row, self.feed(row)) for row in x]
        return [plus(row, self.choose(row)) for row in x] if i == 2 else x


def plus(x, y):
    return [a + b for a, b in zip(x, y)]


def logits(t, ids):
    x = [plus(plus([1.5*a for a in t["token_embd.weight"][token]], t["token_types.weight"][0]), where)
         for token, where in zip(ids, t["position_embd.weight"])]
    x, kept = [centred(row, t["tok_norm.weight"], t["tok_norm.bias"]) for row in x], []
    for i in range(4):
        x = Layer(t, i).run(x, kept)
    for row in x:
        row = centred(row, t["out_norm.weight"], t["out_norm.bias"])
        y = [0.5*math.tanh(3*sum(a*b for a, b in zip(w, row))/0.5) for w in t["output.weight"]]
        sys.stdout.buffer.write(array.array("f", y).tobytes())


if sys.argv[1] == "model":
    model(drawn())
else:
    logits(rows(drawn()), [int(word) for word in sys.stdin.read().split()])
