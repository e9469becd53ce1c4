/* SPDX-License-Identifier: MIT
 * try.h - passes on a failure: TRY(x) returns the status of x from the function, unless it is GGU_OK. Not installed. */
#ifndef GGU_TRY_H
#define GGU_TRY_H
#include "ggu.h"

#define TRY(x) do { enum ggu_status try_status = (x); if (try_status) return try_status; } while (0)

#endif
