/* Local differential privacy on the respondent's device: an answer in, a randomized report out.
 *
 * The client runs the definition whose digest you pin, and no other one. Each function that can refuse returns a negative
 * number, and writes why into `why`, a buffer of `why_size` bytes, as a text that ends with a NUL; `why` may be NULL.
 * Texts are UTF-8 of a given number of bytes. A client may be shared by threads. */
#ifndef LDP_BUDGET_H
#define LDP_BUDGET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ldp_client ldp_client;

/* A client, or NULL if the definition is refused. `digest`: 64 hexadecimal digits and a NUL. */
ldp_client *ldp_client_new(const uint8_t *definition, size_t size, const char *digest, char *why, size_t why_size);
void ldp_client_free(ldp_client *client);

/* The bytes of a report. */
size_t ldp_client_report_size(const ldp_client *client);
/* 1 if the client needs a secret of the device, of at least 16 bytes; else 0. */
int ldp_client_memoizes(const ldp_client *client);
/* 1 if the label travels with a report; else 0. */
int ldp_client_sends_label(const ldp_client *client);

/* One report of an answer: a text (the name of an answer, or a word), an integer (where answers have no names) or a
 * number of a range. `report` has `ldp_client_report_size` bytes. `secret` may be NULL where nothing is memoized. `label` is
 * NULL, or has 33 bytes: 32 digits and a NUL, or the empty text. Returns 0, or -1 if the answer is refused: then nothing
 * was written to `report`. Send a report once, and keep it until it has arrived. */
int ldp_client_text(const ldp_client *client, const uint8_t *answer, size_t size, const uint8_t *secret, size_t secret_size,
                    uint8_t *report, char *label, char *why, size_t why_size);
int ldp_client_integer(const ldp_client *client, uint64_t answer, const uint8_t *secret, size_t secret_size,
                       uint8_t *report, char *label, char *why, size_t why_size);
int ldp_client_number(const ldp_client *client, double answer, const uint8_t *secret, size_t secret_size,
                      uint8_t *report, char *label, char *why, size_t why_size);

/* The budget and the outbox of this device, in a file at `path`, or NULL. `lifetime` and `day` are decimals of epsilon, such as
 * "4"; `day` may be NULL. Limits that are there already are lowered, and not raised. A device may be shared by threads. */
typedef struct ldp_device ldp_device;
ldp_device *ldp_device_open(const char *path, const char *lifetime, const char *day, char *why, size_t why_size);
void ldp_device_free(ldp_device *device);
/* 1 if nothing was kept before: say to the user that earlier reports do not count. */
int ldp_device_is_fresh(const ldp_device *device);

/* The report of a key, as above: charged, drawn and kept now, or the one that was drawn under this key before; then the answer is
 * not used. Returns 0, 1 if the report has arrived and nothing was written, -1 if it is refused, -2 if a limit does not allow it. */
int ldp_device_text(const ldp_device *device, const ldp_client *client, const char *key, const uint8_t *answer, size_t size,
                    uint8_t *report, char *label, char *why, size_t why_size);
int ldp_device_integer(const ldp_device *device, const ldp_client *client, const char *key, uint64_t answer,
                       uint8_t *report, char *label, char *why, size_t why_size);
int ldp_device_number(const ldp_device *device, const ldp_client *client, const char *key, double answer,
                      uint8_t *report, char *label, char *why, size_t why_size);
/* The report of a key has arrived: it is deleted, and its charge stays. */
int ldp_device_settle(const ldp_device *device, const char *key, char *why, size_t why_size);

#ifdef __cplusplus
}
#endif
#endif
