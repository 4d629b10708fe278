/* Takes one lock with a bare command and says so: what foundation compares a start with. */
#include "raw.h"

int main(int argc, char **argv)
{
	/* The runner of all benchmarks gives an option; there is nothing to measure alone. */
	if (argc < 3)
		return 0;
	int fd = connect_port((int)strtol(argv[1], NULL, 10));
	struct bytes command = encode_words((size_t)argc - 2, argv + 2);
	send_all(fd, command.data, command.length);
	expect_reply(fd, "$-1\r\n", 5);
	ssize_t written = write(STDOUT_FILENO, "held\n", 5);
	free(command.data);
	close(fd);
	return written == 5 ? 0 : 1;
}
