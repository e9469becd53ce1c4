# SPDX-License-Identifier: MIT
"""T5 in plain Python, number by number, from its description (Raffel et al. 2020; Shazeer 2020 for the gated form).

slow_t5.py logits FOLDER    float32 logits of the decoder for each sequence of FOLDER/expected/tokens.json
slow_t5.py gated FOLDER TO  makes of a checkpoint with ReLU one as Flan-T5 is: gated GELU, a head of its own
"""
import array, json, math, os, struct, sys


def read(folder):
    data = open(folder + "/model.safetensors", "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, t in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + at for at in t["data_offsets"])
        form = {"F32": "f", "F16": "e"}[t["dtype"]]
        v = struct.unpack("<%d%s" % ((end - begin)//struct.calcsize(form), form), data[begin:end])
        n = t["shape"][-1]
        tensors[name] = [v[i:i + n] for i in range(0, len(v), n)] if len(t["shape"]) == 2 else v
    return json.load(open(folder + "/config.json")), tensors


def write(folder, config, tensors):
    header, body = {}, b""
    for name in sorted(tensors):
        t = tensors[name]
        rows = t if isinstance(t[0], (list, tuple)) else [t]
        shape = [len(t), len(t[0])] if rows is t else [len(t)]
        raw = array.array("f", [x for row in rows for x in row]).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    head = json.dumps(header).encode()
    head += b" "*(-len(head) % 8)
    open(folder + "/model.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + body)
    json.dump(config, open(folder + "/config.json", "w"))


def times(w, x):
    return [math.fsum(a*b for a, b in zip(row, x)) for row in w]


def normed(x, w, eps):
    scale = 1/math.sqrt(sum(a*a for a in x)/len(x) + eps)
    return [a*scale*b for a, b in zip(x, w)]


def bucket(distance, c, both_ways):
    n, base, far = c["relative_attention_num_buckets"], 0, c["relative_attention_max_distance"]
    if both_ways:
        n //= 2
        base = n if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    near = n//2
    if distance < near:
        return base + distance
    return base + min(n - 1, near + int(math.log(distance/near)/math.log(far/near)*(n - near)))


def attend(c, t, at, rows, seen, bias, causal):
    """rows look at seen; bias[bucket][head] or None"""
    heads, dim = c["num_heads"], c["d_kv"]
    q, k, v = ([times(t[at + name + ".weight"], x) for x in xs] for name, xs in (("q", rows), ("k", seen), ("v", seen)))
    out = []
    for i in range(len(rows)):
        mixed = []
        for h in range(heads):
            part = slice(h*dim, (h + 1)*dim)
            last = i + 1 if causal else len(seen)
            s = [sum(a*b for a, b in zip(q[i][part], k[j][part])) for j in range(last)]
            if bias:
                s = [x + bias[bucket(j - i, c, not causal)][h] for j, x in enumerate(s)]
            w = [math.exp(x - max(s)) for x in s]
            mixed += [sum(a*v[j][h*dim + d] for j, a in enumerate(w))/sum(w) for d in range(dim)]
        out.append(times(t[at + "o.weight"], mixed))
    return out


def feed(c, t, at, x):
    if c["feed_forward_proj"] == "relu":
        return times(t[at + "wo.weight"], [max(a, 0) for a in times(t[at + "wi.weight"], x)])
    gelu = [0.5*a*(1 + math.tanh(math.sqrt(2/math.pi)*(a + 0.044715*a**3))) for a in times(t[at + "wi_0.weight"], x)]
    return times(t[at + "wo.weight"], [a*b for a, b in zip(gelu, times(t[at + "wi_1.weight"], x))])


def stack(c, t, name, layers, ids, source):
    eps = c["layer_norm_epsilon"]
    x = [list(t["shared.weight"][i]) for i in ids]
    bias = t[name + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight"]

    def add(made):
        for row, more in zip(x, made):
            row[:] = [a + b for a, b in zip(row, more)]
    for i in range(layers):
        at = "%s.block.%d.layer." % (name, i)
        norm = lambda k: [normed(row, t["%s%d.layer_norm.weight" % (at, k)], eps) for row in x]
        rows = norm(0)
        add(attend(c, t, at + "0.SelfAttention.", rows, rows, bias, source is not None))
        if source is not None:
            add(attend(c, t, at + "1.EncDecAttention.", norm(1), source, None, False))
        last = 1 if source is None else 2
        add([feed(c, t, "%s%d.DenseReluDense." % (at, last), row) for row in norm(last)])
    return [normed(row, t[name + ".final_layer_norm.weight"], eps) for row in x]


def logits(folder):
    c, t = read(folder)
    tokens = json.load(open(folder + "/expected/tokens.json"))
    tied = c.get("tie_word_embeddings", True)
    for ids, decoder in zip(tokens["sequences"], tokens["decoder_sequences"]):
        source = stack(c, t, "encoder", c["num_layers"], ids, None)
        for row in stack(c, t, "decoder", c["num_decoder_layers"], decoder, source):
            if tied:
                row = [a*c["d_model"]**-0.5 for a in row]
            sys.stdout.buffer.write(array.array("f", times(t["shared.weight" if tied else "lm_head.weight"], row)).tobytes())


def gated(folder, to):
    c, t = read(folder)
    seed = 1

    def drawn(like):
        nonlocal seed
        rows = []
        for row in like:
            rows.append([])
            for _ in row:
                seed = (seed*6364136223846793005 + 1442695040888963407) % 2**64
                rows[-1].append(((seed >> 40)/2**24 - 0.5)*0.6)
        return rows
    for name in sorted(t):
        if name.endswith("DenseReluDense.wi.weight"):
            t[name.replace("wi.", "wi_0.")] = t[name]
            t[name.replace("wi.", "wi_1.")] = drawn(t[name])
            del t[name]
    t["lm_head.weight"] = drawn(t["shared.weight"])
    c.update(feed_forward_proj="gated-gelu", dense_act_fn="gelu_new", is_gated_act=True, tie_word_embeddings=False)
    os.makedirs(to + "/expected")
    for name in os.listdir(folder):
        if name not in ("expected", "model.safetensors", "config.json"):
            open(to + "/" + name, "wb").write(open(folder + "/" + name, "rb").read())
    open(to + "/expected/tokens.json", "w").write(open(folder + "/expected/tokens.json").read())
    write(to, c, t)


if __name__ == "__main__":
    {"logits": logits, "gated": gated}[sys.argv[1]](*sys.argv[2:])
