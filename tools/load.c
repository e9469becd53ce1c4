/* SPDX-License-Identifier: MIT
 * load.c - see load.h. A mapped file that shrinks while it is used raises SIGBUS; the handler here says so. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../libgguf/pool.h"
#include "../libgguf/text.h"
#include "../libgguf/whole.h"
#include "../quant/attn.h"
#include "load.h"
#include "msg.h"
#include "out.h"
#include "progress.h"
#include "sandbox.h"
#include "unpack.h"

struct ggu_pool *load_pool(int jobs, bool pin, const char *const *inputs, int n, const char *output)
{
	enum { MOST = 4096 };
	struct ggu_cpu *cpus = msg_need(malloc(MOST*sizeof *cpus));
	struct ggu_pool_options o = { jobs, cpus, ggu_cpus(cpus, MOST, NULL), pin };
	struct ggu_pool *p;
	if (!jobs) o.n_threads = ggu_cpu_count();       /* both read files, so before the sandbox */
	sandbox_enter(inputs, n, output);
	p = msg_need(ggu_pool_open(&o));
	free(cpus);
	return p;
}

unsigned load_hold(const struct load_place *p)
{
	return (p->mlock ? GGU_HOLD_LOCK : 0) | (p->no_mmap ? GGU_HOLD_COPY : 0);
}

/* ---- a file that shrinks while it is mapped ---- */

static char shrunk[200];
static atomic_flag told = ATOMIC_FLAG_INIT;
static void on_bus_error(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code == BUS_ADRERR) {
		/* several threads may meet the end of the file at once: one reports it, the others wait for the exit */
		while (atomic_flag_test_and_set(&told)) pause();
		progress_wipe();
		ssize_t unused = write(2, shrunk, strlen(shrunk));
		(void)unused;
		out_abandon_all();
		_exit(EXIT_TROUBLE);
	}
	signal(sig, SIG_DFL);           /* something else: let it happen again, with the usual result */
}
void load_tell_of_shrinking(void)
{
	struct sigaction act = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
	snprintf(shrunk, sizeof shrunk,
		"%.60s: a model's file was truncated, or could not be read, while it was in use\n", msg_program);
	sigaction(SIGBUS, &act, NULL);
}

struct model *load_model(const char *path, const struct opt_list *arch_files, struct ggu_pool *pool)
{
	return load_model_held(path, arch_files, pool, 0);
}
void load_refuse_encoder(const struct model *m, const char *path)
{
	if (model_has_encoder(m)) msg_die("%s: has an encoder; this program evaluates decoders only", path);
}

struct model *load_model_held(const char *path, const struct opt_list *arch_files, struct ggu_pool *pool,
	unsigned hold)
{
	struct model_options o = { .pool = pool, .hold = hold };
	struct ggu_error err;
	struct model *m;
	if (!path) msg_usage("no model given: use -m MODEL");
	if (!strcmp(path, "-")) msg_usage("the model cannot be standard input: it is mapped into memory");
	if (arch_files) {
		o.arch_files = arch_files->v;
		o.n_arch_files = arch_files->n;
	}
	load_tell_of_shrinking();
	if (model_open(&m, path, &o, &err)) msg_die_error(path, &err);
	return m;
}

void load_tell_context(const struct model *m, const char *path, size_t n)
{
	const struct ggu_meta *meta = ggu_file_meta(model_file(m));
	struct ggu_str arch = { "", 0 };
	char key[256];
	uint64_t trained;
	ggu_meta_str(meta, "general.architecture", &arch);
	snprintf(key, sizeof key, "%.*s.context_length", arch.n < 200 ? (int)arch.n : 0, arch.p);
	if (ggu_meta_uint(meta, key, &trained) && trained && trained < n)
		msg_warn("%s: was trained for %llu position%s, fewer than the %zu of this context", path,
			(unsigned long long)trained, text_s(trained), n);
}

static uint32_t cache_type(const char *option, const char *name, uint32_t dflt)
{
	const struct ggu_type_info *t = name ? ggu_type_find(name) : ggu_type_info(dflt);
	if (!t || !attn_can_store(t->id, 32))
		msg_usage("%s expects f32, f16, bf16, i16, q8_0, q5_1 or q4_0, not '%s'", option, name);
	return t->id;
}
struct state_options load_cache_types(const struct load_cache *c, uint32_t dflt)
{
	return (struct state_options){ cache_type("--cache-type-k", c->k, dflt),
		cache_type("--cache-type-v", c->v, dflt) };
}

void load_tokenizer(const struct model *m, const char *path, struct vocab **v, struct tokenizer **t)
{
	struct ggu_error err;
	const struct ggu_file *f = model_file(m);
	if (vocab_from_meta(v, ggu_file_meta(f), &err)) msg_die_error(ggu_file_source_name(f, 0), &err);
	if (tokenizer_new(t, *v, &err)) msg_die_error(path, &err);
}

char *load_text(const char *path, size_t most, size_t *n)
{
	bool standard = !path || !strcmp(path, "-");
	int fd = standard ? 0 : open(path, O_RDONLY | O_CLOEXEC);
	struct unpack *u = msg_need(malloc(sizeof *u));
	struct whole w = { .more = unpack_more, .ctx = u };
	struct ggu_error err;
	enum ggu_status s;
	if (fd < 0) msg_die("%s: %s", path, strerror(errno));
	unpack_begin(u, fd);
	s = whole_all(&w, most, &err);
	if (s == GGU_ERR_RANGE)
		msg_die("%s: is longer than the limit of %s", msg_name(path), msg_bytes(most));
	if (s) msg_die_error(path, &err);
	unpack_end(u);
	free(u);
	if (!standard) close(fd);
	*n = w.n;
	return w.p;
}

/* The most ids that the windows take, or 0: all that there are. */
static size_t most_ids(const struct load_windows *w)
{
	const uint64_t most = SIZE_MAX/w->ctx;
	return !w->chunks || w->from > most || w->chunks > most - w->from ? 0 : (size_t)(w->from + w->chunks)*w->ctx;
}
size_t load_windows(const struct load_windows *w, struct tokenizer *t, const char *file, const char *text, size_t n,
	int32_t **ids)
{
	const char *shown = msg_name(file);
	struct ggu_error err;
	size_t n_ids = 0, there;
	*ids = NULL;
	if (tokenizer_encode_first(t, text, n, w->flags, most_ids(w), ids, &n_ids, &err))
		msg_die_error(file, &err);
	there = n_ids/w->ctx;
	if (!there)
		msg_die("%s: %zu token%s no window of %zu: give more text or a smaller --ctx", shown, n_ids,
			n_ids == 1 ? " makes" : "s make", w->ctx);
	if (there <= w->from)
		msg_die("%s: has only %zu window%s, none from %llu on", shown, there, text_s(there),
			(unsigned long long)w->from);
	there -= (size_t)w->from;
	memmove(*ids, *ids + (size_t)w->from*w->ctx, there*w->ctx*sizeof **ids);
	if (w->chunks > there) load_few_windows(shown, there, w->from);
	return w->chunks && w->chunks < there ? (size_t)w->chunks : there;
}

void load_few_windows(const char *file, size_t n, uint64_t from)
{
	if (from) msg_warn("%s: has only %zu window%s from %llu on", file, n, text_s(n), (unsigned long long)from);
	else msg_warn("%s: has only %zu window%s", file, n, text_s(n));
}

bool load_id(const char *file, const char *text, const char **p, bool lines, size_t n_vocab, int32_t *id)
{
	static const char blanks[] = "\n \t\r,";
	const char *at = *p + strspn(*p, blanks + !lines);
	size_t n = strcspn(at, blanks), digits = strspn(at, "0123456789"), byte = (size_t)(at - text);
	unsigned long long v;
	if (!n) return false;
	if (digits != n) msg_die("%s: byte %zu: '%.*s' is not a token id", file, byte, n < 20 ? (int)n : 20, at);
	v = strtoull(at, NULL, 10);     /* a number that does not fit becomes the greatest */
	if (v >= n_vocab || v > INT32_MAX)
		msg_die("%s: byte %zu: token %.*s is not in the vocabulary of %zu", file, byte, n < 20 ? (int)n : 20,
			at, n_vocab);
	*id = (int32_t)v;
	*p = at + n;
	return true;
}

const char *load_base_name(const char *path)
{
	const char *slash;
	if (!path || !strcmp(path, "-")) return "stdin";
	slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}
