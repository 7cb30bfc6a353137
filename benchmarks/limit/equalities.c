/* The limit for E: five equalities out of ten attributes with 200 values each.

   The ten attributes are split into four groups: {0 1 2} {3 4 5} {6 7} {8 9}. Of the five attributes of a
   subscription, two are in one group. So the eight pairs within groups are enough: for each there is a table of
   200 x 200 buckets, and each subscription is in one bucket of one table, the emptiest of those that are possible.
   An event reads eight buckets, and the other three values of their entries are compared.

   Events are processed thirty-two at a time: first the bounds of all their buckets are fetched, then the buckets, so
   that the processor waits for many of them at once.

   Subscriptions have ten columns: attribute, value, attribute, value, ...; events the ten values. */

#include "driver.h"

enum { ATTRIBUTES = 10, ASKED = 5, VALUES = 200, PAIRS = 8, BUCKETS = VALUES * VALUES, BATCH = 32 };

static const int one[PAIRS] = {0, 0, 1, 3, 3, 4, 6, 8};
static const int other[PAIRS] = {1, 2, 2, 4, 5, 5, 7, 9};

typedef struct {
    uint32_t number;
    uint8_t attribute[3], value[3]; /* the other tests */
    uint8_t unused[2];
} Entry; /* 12 bytes */

static uint32_t *first; /* bucket b holds the entries first[b] .. first[b + 1] - 1 */
static Entry *entry;
static int64_t events;
static uint8_t (*event)[16];

static inline uint32_t bucket(int pair, int a, int b)
{
    return pair * BUCKETS + a * VALUES + b;
}

/* Return the emptiest of the buckets that are possible for this subscription. */
static uint32_t place(const int32_t *row, const uint32_t *size, int *chosen)
{
    int value[ATTRIBUTES];
    uint32_t best = UINT32_MAX;
    memset(value, -1, sizeof value);
    for (int i = 0; i < ASKED; i++)
        value[row[2 * i]] = row[2 * i + 1];
    for (int pair = 0; pair < PAIRS; pair++) {
        int a = value[one[pair]], b = value[other[pair]];
        if (a >= 0 && b >= 0 && (best == UINT32_MAX || size[bucket(pair, a, b)] < size[best])) {
            best = bucket(pair, a, b);
            *chosen = pair;
        }
    }
    return best;
}

static Entry rest(const int32_t *row, int pair, uint32_t number)
{
    Entry found = {.number = number};
    for (int i = 0, left = 0; i < ASKED; i++)
        if (row[2 * i] != one[pair] && row[2 * i] != other[pair]) {
            found.attribute[left] = row[2 * i];
            found.value[left++] = row[2 * i + 1];
        }
    return found;
}

static int64_t load(Table table)
{
    int64_t rows = table.rows;
    uint32_t *where = room(4 * rows);
    uint8_t *pair = room(rows);
    first = zeros(4 * (PAIRS * BUCKETS + 2));
    entry = room(rows * sizeof(Entry));
    for (int64_t i = 0; i < rows; i++) {
        int chosen = 0;
        where[i] = place(table.cell + 2 * ASKED * i, first + 2, &chosen);
        pair[i] = chosen;
        first[where[i] + 2]++; /* two places on: filling moves each start to its place */
    }
    for (int b = 1; b <= PAIRS * BUCKETS; b++)
        first[b + 1] += first[b];
    for (int64_t i = 0; i < rows; i++)
        entry[first[where[i] + 1]++] = rest(table.cell + 2 * ASKED * i, pair[i], i);
    free(where);
    free(pair);
    return rows * sizeof(Entry) + 4 * (PAIRS * BUCKETS + 1);
}

static void give(Table table)
{
    free(event);
    events = table.rows;
    event = room(events * sizeof *event);
    for (int64_t i = 0; i < events; i++)
        for (int a = 0; a < ATTRIBUTES; a++)
            event[i][a] = table.cell[ATTRIBUTES * i + a];
}

static inline int32_t matched(const uint8_t *value, const uint32_t *begin, const uint32_t *end)
{
    int32_t count = 0, *out = answers;
    for (int pair = 0; pair < PAIRS; pair++)
        for (const Entry *each = entry + begin[pair], *last = entry + end[pair]; each < last; each++) {
            out[count] = each->number; /* the next one overwrites it if it does not match: no branch */
            count += (value[each->attribute[0]] == each->value[0]) & (value[each->attribute[1]] == each->value[1]) &
                     (value[each->attribute[2]] == each->value[2]);
        }
    return count;
}

static void match(int32_t *found)
{
    static uint32_t at[BATCH][PAIRS], begin[BATCH][PAIRS], end[BATCH][PAIRS];
    for (int64_t from = 0; from < events; from += BATCH) {
        int size = events - from < BATCH ? events - from : BATCH;
        for (int i = 0; i < size; i++)
            for (int pair = 0; pair < PAIRS; pair++) {
                const uint8_t *value = event[from + i];
                at[i][pair] = bucket(pair, value[one[pair]], value[other[pair]]);
                __builtin_prefetch(first + at[i][pair]);
            }
        for (int i = 0; i < size; i++)
            for (int pair = 0; pair < PAIRS; pair++) {
                begin[i][pair] = first[at[i][pair]];
                end[i][pair] = first[at[i][pair] + 1];
                __builtin_prefetch(entry + begin[i][pair]);
            }
        for (int i = 0; i < size; i++)
            found[from + i] = matched(event[from + i], begin[i], end[i]);
    }
}
