/* Certificates for TLS tests, made fresh with the openssl command. */
#ifndef TESTS_SUPPORT_CERTS_H
#define TESTS_SUPPORT_CERTS_H

/* Paths of PEM files. All but self and other_ca are signed by ca. */
struct certs {
	char *dir;
	char *ca;
	char *server_cert, *server_key;   /* for localhost and 127.0.0.1 */
	char *wrong_cert, *wrong_key;     /* for the host elsewhere.example */
	char *expired_cert, *expired_key; /* for localhost, January 2020 only */
	char *self_cert, *self_key;       /* for localhost, self-signed */
	char *client_cert, *client_key;
	char *other_ca; /* has signed none of the others */
};

/* Makes all files. Without the openssl command the program exits as skipped. */
struct certs *certs_make(void);

/* Removes the files. Takes NULL. */
void certs_free(struct certs *certs);

#endif
