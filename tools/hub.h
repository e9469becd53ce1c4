/* SPDX-License-Identifier: MIT
 * hub.h - finds checkpoints by name in the local cache of the Hugging Face hub. Nothing is downloaded. Programs
 * only. */
#ifndef TOOLS_HUB_H
#define TOOLS_HUB_H

/* The folder that `name` means: `name` itself, if there is something under that path or it does not look like ORG/NAME
 * or ORG/NAME@REVISION; otherwise the snapshot of that revision ("main" by default) in the cache. If the cache has
 * none, dies with a message that says where it looked. The result lives as long as the program. */
const char *hub_folder(const char *name);

#endif
