/* Shared by the three programs: tables of integers from files, a clock, and the protocol of the harness.

   A program reads one command per line and answers each with a line of JSON:

       load FILE     load the subscriptions      {"seconds": 0.04, "bytes": 20000000}
       give FILE     load events                 {"events": 100000}
       match         match all events            {"seconds": 0.02, "matches": 1800000}
       counts FILE   write the number of matches of each event, as int32

   Words are separated by a tab. Seconds are CPU time. A program defines load, give and match below. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    int64_t rows, columns;
    int32_t *cell; /* row after row */
} Table;

/* Build the index; return the number of bytes that matching needs. */
static int64_t load(Table subscriptions);

/* Convert events into the form for matching. */
static void give(Table events);

/* Match all events given; found[i] becomes the number of subscriptions that event i satisfies. Each program also
   writes the numbers of those subscriptions to `answers`, which an application would read next: counting alone
   would be less work than matching. */
static void match(int32_t *found);

static int32_t *answers;

/* Allocate memory aligned to 64 bytes, with extra space at the end, because vectors may read past it. */
static void *room(size_t bytes)
{
    void *found = aligned_alloc(64, (bytes + 191) / 64 * 64);
    if (!found) {
        printf("{\"error\": \"no memory for %zu bytes\"}\n", bytes);
        exit(1);
    }
    return found;
}

static void *zeros(size_t bytes)
{
    return memset(room(bytes), 0, bytes);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

/* A file is the number of rows, the number of columns (int64 both) and the cells (int32). */
static Table read_table(const char *path)
{
    Table table;
    FILE *file = fopen(path, "rb");
    int fine = file && fread(&table, sizeof(int64_t), 2, file) == 2;
    size_t cells = fine ? table.rows * table.columns : 0;
    table.cell = room(4 * cells);
    if (!fine || fread(table.cell, 4, cells, file) != cells) {
        printf("{\"error\": \"%s is not a table\"}\n", path);
        exit(1);
    }
    fclose(file);
    return table;
}

static void write_counts(const char *path, const int32_t *found, int64_t rows)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(found, 4, rows, file) != (size_t)rows || fclose(file)) {
        printf("{\"error\": \"cannot write %s\"}\n", path);
        exit(1);
    }
    printf("{}\n");
}

int main(void)
{
    char line[4096];
    int32_t *found = NULL;
    int64_t events = 0, most = 0;
    while (fgets(line, sizeof line, stdin)) {
        char *word = strtok(line, "\t\n"), *path = strtok(NULL, "\t\n");
        if (!strcmp(word, "load")) {
            Table table = read_table(path);
            answers = room(4 * table.rows);
            double began = seconds();
            int64_t bytes = load(table);
            printf("{\"seconds\": %.9f, \"bytes\": %lld}\n", seconds() - began, (long long)bytes);
            free(table.cell);
        } else if (!strcmp(word, "give")) {
            Table table = read_table(path);
            events = table.rows;
            if (events > most) {
                free(found);
                found = room(4 * (most = events));
            }
            give(table);
            free(table.cell);
            printf("{\"events\": %lld}\n", (long long)events);
        } else if (!strcmp(word, "match")) {
            int64_t matches = 0;
            double began = seconds();
            match(found);
            double taken = seconds() - began;
            for (int64_t i = 0; i < events; i++)
                matches += found[i];
            printf("{\"seconds\": %.9f, \"matches\": %lld}\n", taken, (long long)matches);
        } else {
            write_counts(path, found, events);
        }
        fflush(stdout);
    }
    return 0;
}
