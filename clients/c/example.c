/* Writes the reports of an answer:   example DEFINITION.json DIGEST ANSWER COUNT > reports */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ldp_budget.h"

int main(int count, char **words) {
    static uint8_t definition[1 << 20];
    char why[200] = "";
    if (count != 5) return fprintf(stderr, "usage: example DEFINITION.json DIGEST ANSWER COUNT\n"), 2;
    FILE *file = fopen(words[1], "rb");
    if (!file) return perror(words[1]), 1;
    size_t size = fread(definition, 1, sizeof definition, file);
    fclose(file);

    /* The digest is a constant of your app. */
    ldp_client *client = ldp_client_new(definition, size, words[2], why, sizeof why);
    if (!client) return fprintf(stderr, "refused: %s\n", why), 1;
    size_t bytes = ldp_client_report_size(client);
    uint8_t *report = malloc(bytes ? bytes : 1);
    if (!report) return 1;
    const uint8_t *answer = (const uint8_t *)words[3];
    int status = 0;
    for (long left = atol(words[4]); left > 0 && status == 0; left--) {
        status = ldp_client_text(client, answer, strlen(words[3]), NULL, 0, report, NULL, why, sizeof why);
        if (status == 0 && fwrite(report, 1, bytes, stdout) != bytes) status = 1;
    }
    if (status) fprintf(stderr, "refused: %s\n", why);
    free(report);
    ldp_client_free(client);
    return status ? 1 : 0;
}
