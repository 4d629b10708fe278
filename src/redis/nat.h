/* Address translation: where a node is reached whose own address means nothing here. */
#ifndef HF_REDIS_NAT_H
#define HF_REDIS_NAT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether the text is a list of rules: "from:to,…" for hosts, "from:port:to:port,…" for one port of
 * a host. An IPv6 address is in brackets.
 */
bool hf__nat_is_valid(const char *rules);

/* Applies the first rule that fits the address. Takes NULL for rules, and then does nothing. */
void hf__nat_apply(const char *rules, char *host, size_t size, int *port);

#endif
