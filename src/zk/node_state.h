/* The states of an acquisition's node: which there are, and what each event makes of them. */
#ifndef HF_ZK_NODE_STATE_H
#define HF_ZK_NODE_STATE_H

#include <stdbool.h>

/*
 * What we know of the node on the server. Whether requests are in flight is not part of the state:
 * answers can be lost with the connection, and the next step must follow from the state alone.
 *
 * A semaphore's acquisition has two nodes, one after the other: first the gate, a mutex that lets
 * one waiter at a time reach the leases, then the lease. The lease has states of its own.
 */
enum hf__node_state {
	HF__ZNODE_NONE, /* not a state: it marks events that are not possible */

	/* Nothing of ours is on the server: it was never created, or is certainly gone. */
	HF__ZNODE_ABSENT,
	HF__ZNODE_BLOCKED, /* absent: a plain lock's node is where its folder should be */
	HF__ZNODE_OUTSIDE, /* absent: waits until a plain lock's node is gone */

	/* The node of the lock, or a semaphore's gate. */
	HF__ZNODE_CREATING,      /* a list of its folder follows the request */
	HF__ZNODE_CREATING_LONE, /* no list follows: it is likely to be alone in its folder */
	HF__ZNODE_UNKNOWN,       /* it may exist */
	HF__ZNODE_QUEUED,        /* it exists */
	HF__ZNODE_WAITING,       /* it exists; the ask was answered "busy", and a watch is set */
	HF__ZNODE_DELETING,      /* its deletion was requested, and may have happened */

	/* A semaphore's lease. Its gate exists up to LEASE_COUNTED. */
	HF__ZNODE_LEASE_ABSENT,
	HF__ZNODE_LEASE_CREATING,
	HF__ZNODE_LEASE_UNKNOWN,
	HF__ZNODE_LEASE_QUEUED,
	HF__ZNODE_LEASE_WAITING,
	HF__ZNODE_LEASE_COUNTED, /* the permit is ours; the gate has to be opened */
	HF__ZNODE_LEASE_TAKEN,   /* the permit is ours and the gate open; the ask is not answered */
	HF__ZNODE_LEASE_DELETING,

	/* Granted. */
	HF__ZNODE_HELD,
	HF__ZNODE_RELEASING,  /* its deletion was requested, and may have happened */
	HF__ZNODE_TAKEN_AWAY, /* somebody else deleted it while it was being released */

	HF__ZNODE_DEAD, /* nobody's; freed with its last request */
	HF__ZNODE_STATES
};

enum hf__node_event {
	HF__ON_CREATE, /* its creation is requested */
	HF__ON_CREATE_LONE,
	HF__ON_CREATED,
	HF__ON_REFUSED, /* it was not created */
	HF__ON_BLOCKED, /* it was not created, since a plain lock's node cannot have children */
	HF__ON_LOST,    /* nobody knows whether it was created */
	HF__ON_FOUND,
	HF__ON_MISSED,  /* a search or a list did not find it */
	HF__ON_BUSY,    /* the ask is answered "busy", and a watch is set */
	HF__ON_RESUMED, /* the watch has fired, or another command arrived */
	HF__ON_GATE_PASSED,
	HF__ON_COUNTED, /* there are no more leases than permits */
	HF__ON_GATE_OPENED,
	HF__ON_GRANTED,
	/* A grant arrived too late and is asked for again. */
	HF__ON_RETRY,
	HF__ON_RETRY_PLAIN, /* its path may have another's node by now: it has to be searched for */
	HF__ON_RETRY_LEASE,
	HF__ON_DELETE,       /* its deletion is requested */
	HF__ON_LEASE_UNDONE, /* the lease is gone or was never created; the gate is next */
	HF__ON_GONE,         /* somebody else deleted it */
	HF__ON_BURIED,       /* nobody needs it any more */
	HF__ON_EVENTS
};

/* The state after the event, which must be possible in this state. */
enum hf__node_state hf__node_state_after(enum hf__node_state state, enum hf__node_event event);
/* The same, or HF__ZNODE_NONE if it is not possible. */
enum hf__node_state hf__node_state_find(enum hf__node_state state, enum hf__node_event event);

/* HELD or RELEASING. */
bool hf__node_state_is_granted(enum hf__node_state state);
/* OUTSIDE, WAITING or LEASE_WAITING. */
bool hf__node_state_is_waiting(enum hf__node_state state);
/* The node that the state is about exists on the server, as far as we know. */
bool hf__node_state_exists(enum hf__node_state state);
/* If the lock is a semaphore, the state is about its lease, not its gate. */
bool hf__node_state_is_lease(enum hf__node_state state);
/* The gate of a semaphore exists besides its lease. */
bool hf__node_state_has_gate(enum hf__node_state state);

#endif
