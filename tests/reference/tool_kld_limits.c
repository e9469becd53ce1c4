/* SPDX-License-Identifier: MIT
 * tool_kld_limits PEERS.json - a line for each recipe whose divergence a peer has left us: the recipe, "matrix" or
 * "none", the better peer's divergence, and that with its standard error. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char *const none = " (no imatrix)";

int main(int argc, char **argv)
{
	json_t *root = argc == 2 ? json_load_file(argv[1], 0, NULL) : NULL;
	json_t *peers = json_object_get(root, "recipes"), *first, *recipe;
	const char *name;
	if (!peers) return 1;
	first = json_object_iter_value(json_object_iter(peers));
	json_object_foreach(first, name, recipe) {
		double best = 0, error = 0;
		const char *peer, *tail = strstr(name, none);
		json_t *all;
		json_object_foreach(peers, peer, all) {
			json_t *r = json_object_get(all, name), *k = json_object_get(r, "kld_decoded");
			if (!json_is_real(k) || (best != 0 && json_real_value(k) >= best)) continue;
			best = json_real_value(k);
			error = json_number_value(json_object_get(r, "kld_decoded_stderr"));
		}
		if (best == 0) continue;
		printf("%.*s %s %.9g %.9g\n", (int)(tail ? tail - name : (long)strlen(name)), name, tail ? "none" :
			"matrix", best, best + error);
	}
	json_decref(root);
	return 0;
}
