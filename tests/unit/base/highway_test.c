/* Checks the hash of group values against what Redisson writes for the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/highway.h"
#include "support/check.h"

#define DIGITS  "0123456789abcdef"
#define DIGITS2 DIGITS DIGITS

struct vector {
	const char *bytes;
	size_t length;
	const char *text;
};

/* A literal and its length without the NUL; the bytes may include NUL. */
#define BYTES(literal) (literal), sizeof(literal) - 1

static void check_vectors(const struct vector *vectors, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		/* A copy of just this size lets sanitizers see a read beyond the end. */
		char *bytes = check_alloc(vectors[i].length + !vectors[i].length);
		char text[23];
		memcpy(bytes, vectors[i].bytes, vectors[i].length);
		memset(text, 'x', sizeof text);
		hf__highway_text(bytes, vectors[i].length, text);
		assert_int_equal(text[22], '\0');
		assert_string_equal(text, vectors[i].text);
		free(bytes);
	}
}

static void plain_text_hashes_as_with_the_string_codec(void **state)
{
	static const struct vector vectors[] = {
		{BYTES(""), "t6rZwibGo2uy1OSmNVe8pg"},
		{BYTES("a"), "qwvAS12pR0CgRitaypEjUw"},
		{BYTES("test1"), "sMUTHC2Ql4EaCGlDp3W/MQ"},
		{BYTES("test2"), "436CZJNgLJy17cg3htdgnw"},
		{BYTES("student:001"), "DqvoYruF5eyLDrILcprmBw"},
		{BYTES(DIGITS), "5qUj4dpRCsa+LSow2X8w7w"},
		{BYTES(DIGITS "0"), "KwfrYDMCsEAjgU/ymR+lgw"},
		{BYTES(DIGITS "01"), "D/2SQ83OvaoDm9zkmzYgBQ"},
		{BYTES(DIGITS "0123456789abcde"), "zsxmZXDIjwSeXS/uD03XEQ"},
		{BYTES(DIGITS2), "08hr0B8iaf3PoSsWAS8sWA"},
		{BYTES(DIGITS2 "X"), "VjlgQDRPSK889um0d9QvSg"},
		{BYTES("\xc3\xa9t\xc3\xa9"), "4KIPJaphtmVIfVFFOBnyUQ"},
	};

	(void)state;
	check_vectors(vectors, sizeof vectors / sizeof vectors[0]);
}

static void kryo_bytes_hash_as_with_the_default_codec(void **state)
{
	static const struct vector vectors[] = {
		{BYTES("\x03\x81"), "8kZ0F42HzoQfW3jDxQ6f4g"},
		{BYTES("\x03\x82\x61"), "Jon6GCcO+0QSJkhre5wXYA"},
		{BYTES("\x03test\xb1"), "1YYJvWKPQAOHqhq/jABzZA"},
		{BYTES("\x03test\xb2"), "Jf+x6Qlu6nCEmB92PmiUNA"},
		{BYTES("\x03test\xb3"), "PwiPTANX+ANwByVqRU4iRg"},
		{BYTES("\x03student:00\xb1"), "xlFkXAEowi21EJq3jIyssg"},
		{BYTES("\x03" DIGITS "0123456789abcde\xe6"), "j4fGMdw7DsVJQiajTh1/dg"},
		{BYTES("\x03\xa2" DIGITS2 "X"), "GZZ/iJ194HZB4C5SUb165A"},
		{BYTES("\x03\x84\xc3\xa9t\xc3\xa9"), "vs4ZmNrVBgN8mZeV79K9NQ"},
	};

	(void)state;
	check_vectors(vectors, sizeof vectors / sizeof vectors[0]);
}

/* The last bytes are mixed in depending on the length; each byte must count at every length. */
static void every_byte_counts_at_every_length(void **state)
{
	char bytes[100] = {0};
	char before[23];
	char after[23];

	(void)state;
	for (size_t length = 1; length <= sizeof bytes; length++) {
		hf__highway_text(bytes, length, before);
		for (size_t i = 0; i < length; i++) {
			bytes[i] = 1;
			hf__highway_text(bytes, length, after);
			assert_string_not_equal(before, after);
			bytes[i] = 0;
		}
		hf__highway_text(bytes, length - 1, after);
		assert_string_not_equal(before, after);
	}
}

static void unaligned_bytes_hash_the_same(void **state)
{
	char room[8 + sizeof DIGITS2];
	char text[23];

	(void)state;
	for (size_t shift = 0; shift < 8; shift++) {
		memcpy(room + shift, DIGITS2, sizeof DIGITS2);
		hf__highway_text(room + shift, sizeof DIGITS2 - 1, text);
		assert_string_equal(text, "08hr0B8iaf3PoSsWAS8sWA");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_text_hashes_as_with_the_string_codec),
		cmocka_unit_test(kryo_bytes_hash_as_with_the_default_codec),
		cmocka_unit_test(every_byte_counts_at_every_length),
		cmocka_unit_test(unaligned_bytes_hash_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
