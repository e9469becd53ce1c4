/* SPDX-License-Identifier: MIT
 * test_limits.c - the loops that measure a machine: each runs where its instruction set does, and takes time. */
#include <string.h>
#include "../../quant/quant.h"
#include "../../tools/limits.h"
#include "../lib/kerntest.h"

int main(int argc, char **argv)
{
	struct ggu_pool *pool = ggu_pool_new(2);
	kt_begin(argc, argv);
	for (const char *const *isa = quant_available(); *isa; isa++) {
#ifdef CPU_STAND_INS                    /* known to kernels alone */
		if (!strcmp(*isa, "avxvnni")) continue;
#endif
		const struct limits l = limits_of(*isa, pool);
		kt_name("every loop of %s runs", *isa);
		if (!(l.read_gb > 0 && l.copy_gb > 0))
			kt_fail("memory is read by %g and copied by %g GB/s", l.read_gb, l.copy_gb);
		if (!(l.int16_gmacs > 0 && l.int8_gmacs > 0 && l.f32_gmacs > 0))
			kt_fail("int16 %g, int8 %g, f32 %g GMAC/s", l.int16_gmacs, l.int8_gmacs, l.f32_gmacs);
		if (!strcmp(*isa, "amx") && !(l.amx_gmacs > 0)) kt_fail("AMX %g GMAC/s", l.amx_gmacs);
		if (!(limits_products(*isa, false) > 0 && limits_products(*isa, true) > 0)) kt_fail("a core has none");
		kt_result();
	}
	ggu_pool_free(pool);
	return kt_end();
}
