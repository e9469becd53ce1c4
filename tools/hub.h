/* SPDX-License-Identifier: MIT
 * hub.h - checkpoints by name, out of the local cache of the Hugging Face hub. Nothing is downloaded. Programs only. */
#ifndef TOOLS_HUB_H
#define TOOLS_HUB_H

/* The folder that `name` means: itself, if there is something under that path or it does not look like ORG/NAME or
 * ORG/NAME@REVISION; else the snapshot of that revision ("main" if none is given) in the cache. Dies with a message
 * that says where was looked if the cache has none. The result lives as long as the program. */
const char *hub_folder(const char *name);

#endif
