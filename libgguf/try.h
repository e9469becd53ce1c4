/* SPDX-License-Identifier: MIT
 * try.h - forwards a failure: returns what x came to, unless that is GGU_OK. Not installed. */
#ifndef GGU_TRY_H
#define GGU_TRY_H
#include "ggu.h"

#define TRY(x) do { enum ggu_status try_status = (x); if (try_status) return try_status; } while (0)

#endif
