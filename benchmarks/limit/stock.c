/* The limit for S: symbol = ... and price > ... and open < ... and high > ... and volume > ...

   Subscriptions of one symbol are adjacent, and each of the four bounds is a column. An event is compared with the
   subscriptions of its symbol, sixteen at a time: four comparisons give a mask, and the numbers of the matching ones
   are compressed. While one event is compared, the columns for the eighth event after it are prefetched.

   Subscriptions have the columns symbol, price, open, high, volume; events symbol, price, open, high, low, close,
   volume. */

#include "driver.h"
#ifdef __AVX512F__
#include <immintrin.h>
#endif

enum { PRICE, OPEN, HIGH, VOLUME, BOUNDS };
enum { AHEAD = 8, LINE = 16 /* integers in a cache line */ };

static int32_t symbols, *first; /* subscriptions of symbol s are first[s] .. first[s + 1] - 1 */
static int32_t *bound[BOUNDS], *number;
static int64_t events;
static int32_t (*event)[1 + BOUNDS];

static int64_t load(Table table)
{
    int64_t rows = table.rows;
    for (int64_t i = 0; i < rows; i++)
        if (table.cell[5 * i] >= symbols)
            symbols = table.cell[5 * i] + 1;
    first = zeros(4 * (symbols + 2));
    number = room(4 * rows);
    for (int b = 0; b < BOUNDS; b++)
        bound[b] = room(4 * rows);
    for (int64_t i = 0; i < rows; i++)
        first[table.cell[5 * i] + 2]++; /* two places on: filling moves each start to its place */
    for (int s = 1; s <= symbols; s++)
        first[s + 1] += first[s];
    for (int64_t i = 0; i < rows; i++) {
        const int32_t *row = table.cell + 5 * i;
        int32_t at = first[row[0] + 1]++;
        for (int b = 0; b < BOUNDS; b++)
            bound[b][at] = row[1 + b];
        number[at] = i;
    }
    return 4 * ((BOUNDS + 1) * rows + symbols + 1);
}

static void give(Table table)
{
    static const int column[1 + BOUNDS] = {0, 1, 2, 3, 6};
    free(event);
    events = table.rows;
    event = room(events * sizeof *event);
    for (int64_t i = 0; i < events; i++) {
        for (int b = 0; b <= BOUNDS; b++)
            event[i][b] = table.cell[table.columns * i + column[b]];
        if (event[i][0] >= symbols) /* no subscription tests it: the run after the last symbol is empty */
            event[i][0] = symbols;
    }
}

static inline void fetch(int32_t symbol)
{
    for (int32_t at = first[symbol]; at < first[symbol + 1]; at += LINE)
        for (int b = 0; b < BOUNDS; b++)
            __builtin_prefetch(bound[b] + at);
}

#ifdef __AVX512F__
static inline int32_t matched(const int32_t *value)
{
    const __m512i price = _mm512_set1_epi32(value[1]), open = _mm512_set1_epi32(value[2]);
    const __m512i high = _mm512_set1_epi32(value[3]), volume = _mm512_set1_epi32(value[4]);
    int32_t end = first[value[0] + 1], *out = answers;
    for (int32_t at = first[value[0]]; at < end; at += 16) {
        __mmask16 hit = end - at >= 16 ? 0xffff : (1u << (end - at)) - 1;
        hit = _mm512_mask_cmpgt_epi32_mask(hit, price, _mm512_loadu_si512(bound[PRICE] + at));
        hit = _mm512_mask_cmpgt_epi32_mask(hit, _mm512_loadu_si512(bound[OPEN] + at), open);
        hit = _mm512_mask_cmpgt_epi32_mask(hit, high, _mm512_loadu_si512(bound[HIGH] + at));
        hit = _mm512_mask_cmpgt_epi32_mask(hit, volume, _mm512_loadu_si512(bound[VOLUME] + at));
        if (hit) {
            __m512i numbers = _mm512_loadu_si512(number + at);
            _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(hit, numbers));
            out += __builtin_popcount(hit);
        }
    }
    return out - answers;
}
#else
/* The same in plain C: the compiler makes vectors of the first loop; the second has no branch to mispredict. */
static inline int32_t matched(const int32_t *value)
{
    enum { TILE = 512 };
    uint8_t hit[TILE];
    int32_t end = first[value[0] + 1], count = 0;
    for (int32_t at = first[value[0]]; at < end; at += TILE) {
        const int32_t *price = bound[PRICE] + at, *open = bound[OPEN] + at;
        const int32_t *high = bound[HIGH] + at, *volume = bound[VOLUME] + at;
        int32_t size = end - at < TILE ? end - at : TILE;
        for (int32_t i = 0; i < size; i++)
            hit[i] = (value[1] > price[i]) & (value[2] < open[i]) & (value[3] > high[i]) & (value[4] > volume[i]);
        for (int32_t i = 0; i < size; i++) {
            answers[count] = number[at + i];
            count += hit[i];
        }
    }
    return count;
}
#endif

static void match(int32_t *found)
{
    for (int64_t i = 0; i < events; i++) {
        if (i + AHEAD < events)
            fetch(event[i + AHEAD][0]);
        found[i] = matched(event[i]);
    }
}
