/*
 * Tables whose rows the compiler counts: one that is forgotten would be zero, and found late.
 *
 * A list of rows is a macro that takes another one, and a table is made from it:
 *
 *	#define WORD_ROWS(ROW) ROW(RED, "red") ROW(BLUE, "blue")
 *	static const char *const words[COLOURS] = {WORD_ROWS(HF__ROW)};
 *	HF__ROWS_ARE(WORD_ROWS, HF__BITS_BEFORE(COLOURS));
 */
#ifndef HF_BASE_COMPLETE_H
#define HF_BASE_COMPLETE_H

#include <stdint.h>

/* A row with this index. What follows it is the row's value, in braces if it is a struct. */
#define HF__ROW(number, ...) [number] = __VA_ARGS__,

/* Sets of indexes, which must be lower than 64. */
#define HF__BIT(number)              (UINT64_C(1) << (number))
#define HF__BITS_BEFORE(number)      (HF__BIT(number) - 1)
#define HF__ADD_BIT(number, ...)     | HF__BIT(number)
#define HF__BITS_OF(rows)            (UINT64_C(0) rows(HF__ADD_BIT))
#define HF__ROWS_ARE(rows, the_bits) _Static_assert(HF__BITS_OF(rows) == (the_bits), #rows)

/* For a table without indexes, whose size is not written down. */
#define HF__LENGTH_IS(table, number)                                                               \
	_Static_assert(sizeof(table) / sizeof *(table) == (number), #table)

#endif
