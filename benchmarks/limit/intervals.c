/* The limit for H: ten intervals out of twenty attributes, each 0.3 of a domain of 1,000,000 wide.

   Each attribute's domain is divided into 32 cells. For each cell there is a bitmap of the subscriptions whose intervals
   overlap it (those without a test of the attribute overlap every cell). The AND of the twenty bitmaps of an event's
   cells contains all subscriptions that it satisfies, and a few more, so candidates are compared exactly.

   A million bits do not fit into the cache. So subscriptions are grouped in tiles of 4096, whose bitmaps fit, and a
   tile is matched with a thousand events before the next one. Within a tile the AND runs over 512 bits at a time and
   stops after fourteen attributes if no bit is left.

   Subscriptions have thirty columns: attribute, low, high, ...; events twenty values. */

#include "driver.h"
#ifdef __AVX512F__
#include <immintrin.h>
#endif

enum { ATTRIBUTES = 20, ASKED = 10, DOMAIN = 1000000, CELLS = 32 };
enum { TILE = 4096, BITS = 512, LINES = TILE / BITS, BATCH = 1000, EARLY = 14 };

typedef uint64_t Line __attribute__((vector_size(BITS / 8)));
typedef Line Bitmap[LINES];

static int64_t rows, tiles;
static Bitmap (*bitmaps)[ATTRIBUTES][CELLS]; /* a tile's */
static int32_t (*low)[ATTRIBUTES], (*high)[ATTRIBUTES];
static int64_t events;
static int32_t (*event)[ATTRIBUTES];

static inline int cell(int32_t value)
{
    return (int64_t)value * CELLS / DOMAIN;
}

static void load_row(int64_t i, const int32_t *row)
{
    for (int a = 0; a < ATTRIBUTES; a++) {
        low[i][a] = 0;
        high[i][a] = DOMAIN - 1;
    }
    for (int k = 0; k < ASKED; k++) {
        low[i][row[3 * k]] = row[3 * k + 1];
        high[i][row[3 * k]] = row[3 * k + 2] < DOMAIN ? row[3 * k + 2] : DOMAIN - 1;
    }
    for (int a = 0; a < ATTRIBUTES; a++)
        for (int c = cell(low[i][a]); c <= cell(high[i][a]); c++)
            ((uint8_t *)bitmaps[i / TILE][a][c])[i % TILE / 8] |= 1 << (i % 8);
}

static int64_t load(Table table)
{
    rows = table.rows;
    tiles = (rows + TILE - 1) / TILE;
    bitmaps = zeros(tiles * sizeof *bitmaps);
    low = room(rows * sizeof *low);
    high = room(rows * sizeof *high);
    for (int64_t i = 0; i < rows; i++)
        load_row(i, table.cell + 3 * ASKED * i);
    return tiles * sizeof *bitmaps + 2 * rows * sizeof *low;
}

static void give(Table table)
{
    free(event);
    events = table.rows;
    event = room(events * sizeof *event);
    memcpy(event, table.cell, events * sizeof *event);
}

static inline int any(Line line)
{
#ifdef __AVX512F__
    return _mm512_test_epi64_mask((__m512i)line, (__m512i)line) != 0;
#else
    return (line[0] | line[1] | line[2] | line[3] | line[4] | line[5] | line[6] | line[7]) != 0;
#endif
}

static inline int satisfies(const int32_t *value, int64_t i)
{
    int fine = 1;
    for (int a = 0; a < ATTRIBUTES && fine; a++)
        fine = value[a] >= low[i][a] && value[a] <= high[i][a];
    return fine;
}

/* Compare the candidates of a line exactly; `from` is the subscription of its first bit. */
static int32_t compared(Line line, const int32_t *value, int64_t from, int32_t *out)
{
    int32_t count = 0;
    for (int word = 0; word < BITS / 64; word++)
        for (uint64_t left = line[word]; left; left &= left - 1) {
            int64_t i = from + 64 * word + __builtin_ctzll(left);
            out[count] = i;
            count += satisfies(value, i);
        }
    return count;
}

static int32_t matched(int64_t tile, const int32_t *value)
{
    const Line *bitmap[ATTRIBUTES];
    int32_t count = 0;
    for (int a = 0; a < ATTRIBUTES; a++)
        bitmap[a] = bitmaps[tile][a][cell(value[a])];
    for (int line = 0; line < LINES; line++) {
        Line left = bitmap[0][line];
        for (int a = 1; a < EARLY; a++)
            left &= bitmap[a][line];
        if (!any(left))
            continue;
        for (int a = EARLY; a < ATTRIBUTES; a++)
            left &= bitmap[a][line];
        if (any(left))
            count += compared(left, value, tile * TILE + line * BITS, answers + count);
    }
    return count;
}

static void match(int32_t *found)
{
    memset(found, 0, 4 * events);
    for (int64_t from = 0; from < events; from += BATCH)
        for (int64_t tile = 0; tile < tiles; tile++)
            for (int64_t i = from; i < from + BATCH && i < events; i++)
                found[i] += matched(tile, event[i]);
}
