/* A circular doubly linked list whose links live inside its members. */
#ifndef HF_BASE_LIST_H
#define HF_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct hf__list {
	struct hf__list *next;
	struct hf__list *prev;
};

/* The member that contains this link. */
#define hf__list_item(link, type, field) ((type *)(void *)((char *)(link)-offsetof(type, field)))

#define hf__list_each(link, head)                                                                  \
	for ((link) = (head)->next; (link) != (head); (link) = (link)->next)

/* The same, but the member that is visited can be removed. */
#define hf__list_each_safe(link, after, head)                                                      \
	for ((link) = (head)->next, (after) = (link)->next; (link) != (head);                      \
	     (link) = (after), (after) = (link)->next)

static inline void hf__list_init(struct hf__list *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool hf__list_empty(const struct hf__list *list)
{
	return list->next == list;
}

static inline void hf__list_add(struct hf__list *list, struct hf__list *link)
{
	link->prev = list->prev;
	link->next = list;
	list->prev->next = link;
	list->prev = link;
}

/* Afterwards the link is empty, and can be added again. */
static inline void hf__list_remove(struct hf__list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	hf__list_init(link);
}

/* Moves all members to the end of another list. */
static inline void hf__list_move(struct hf__list *to, struct hf__list *from)
{
	if (hf__list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	hf__list_init(from);
}

#endif
