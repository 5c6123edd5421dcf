// default: the built-in rules of this name (sdk/rules), in C.
//
// The lowest priority is evicted first; within a priority the allocation nearest to the
// remaining need, measured again after each pick; of equals the one that can best run
// elsewhere, then the first row. Among options: the lowest highest victim priority, then
// the fewest victims, the lowest sum of priorities, the victims that can best run
// elsewhere, and the best fit without the victims.
//
// Of bindings on a member cluster the lowest priority is evicted first, then the one that
// started last, then the last name. Among clusters: the fewest
// victims, the lowest highest priority, the lowest sum of priorities.
#include "../cede.h"

// need is the reference of distances: the ask less the amounts that
// picked rows free, over the dimensions in which it is above zero.
static struct {
  const double **asked; // the use of dimensions with an ask
  double *ask;
  int32_t asks;

  const double **use; // the remaining need
  double *left;
  int32_t count;
} need;

// lack is the shortage of an option.
static struct {
  const double **need, **frees; // a column per dimension and device request
  int32_t columns;
  const int32_t *must_leave;
  const uint8_t *leaves;

  const double **still; // frees of the columns not covered yet
  double *left;
  int32_t count, must;
} lack;

// lay_out allocates memory for the columns of a call.
static bool lay_out(uint32_t columns) {
  static cede_buffer memory;
  char *at = cede_room(&memory, columns * (5 * sizeof(double *) + 3 * sizeof(double)));
  if (!at) return false;
  need.ask = (double *)at;
  need.left = need.ask + columns;
  lack.left = need.left + columns;
  need.asked = (const double **)(lack.left + columns);
  need.use = need.asked + columns;
  lack.need = need.use + columns;
  lack.frees = lack.need + columns;
  lack.still = lack.frees + columns;
  return true;
}

static const cede_rows *table; // the rows of the call

// relocates_better reports whether a row can better run elsewhere than another one.
static inline bool relocates_better(const cede_rows *r, int32_t a, int32_t b) {
  if (!r->relocation) return false;
  if (r->relocation[a] != r->relocation[b]) return r->relocation[a] < r->relocation[b];
  if (r->displaced_priority[a] != r->displaced_priority[b]) return r->displaced_priority[a] < r->displaced_priority[b];
  return r->displaced_lost_work[a] < r->displaced_lost_work[b];
}

static void load(const cede_candidates *in) {
  table = &in->rows;
  need.asks = lack.columns = 0;
  for (int32_t d = 0; d < in->dims; d++) {
    const double *use = cede_column(in->rows.use, d);
    lack.need[lack.columns] = cede_column(in->need, d);
    lack.frees[lack.columns++] = use;
    if (in->preemptor.ask[d] > 0) {
      need.ask[need.asks] = in->preemptor.ask[d];
      need.asked[need.asks++] = use;
    }
  }
  for (int32_t r = 0; r < in->device_need.columns; r++) {
    lack.need[lack.columns] = cede_column(in->device_need, r);
    lack.frees[lack.columns++] = cede_column(in->rows.devices, r);
  }
  lack.must_leave = in->must_leave;
  lack.leaves = in->rows.must_leave;
}

// reset starts option i with no row picked.
static void reset(int32_t i) {
  need.count = need.asks;
  for (int32_t k = 0; k < need.asks; k++) {
    need.use[k] = need.asked[k];
    need.left[k] = need.ask[k];
  }
  lack.count = 0;
  for (int32_t c = 0; c < lack.columns; c++) {
    double n = lack.need[c][i];
    if (!(n > 0)) continue;
    lack.still[lack.count] = lack.frees[c];
    lack.left[lack.count++] = n;
  }
  lack.must = lack.leaves ? lack.must_leave[i] : 0;
}

// subtract subtracts the amounts that row frees from a vector, and drops covered columns.
static inline int32_t subtract(const double **frees, double *left, int32_t count, int32_t row) {
  int32_t kept = 0;
  for (int32_t k = 0; k < count; k++) {
    double rest = left[k] - frees[k][row];
    if (!(rest > 0)) continue;
    frees[kept] = frees[k];
    left[kept++] = rest;
  }
  return kept;
}

static bool covered(void) { return lack.count == 0 && lack.must == 0; }

static void pick(cede_selection *out, int32_t row) {
  cede_pick(out, row);
  lack.count = subtract(lack.still, lack.left, lack.count, row);
  if (lack.must > 0 && lack.leaves[row]) lack.must--;
}

// closer reports whether the distance with square a is smaller than that with square
// b. Two roots can round to the same only where the squares are within a few
// units in the last place of one another, so most comparisons take no root.
static inline bool closer(double a, double b) {
  return a < b * (1 - 0x1p-50) || (a < b && cede_sqrt(a) < cede_sqrt(b));
}

static inline double square(const double *use, double left, int32_t row) {
  double r = (left - use[row]) / left;
  return r * r;
}

// NEAREST is the search with the sum of squares of a row written out, so that
// columns and needs stay in registers.
#define NEAREST(sum)                               \
  for (int32_t j = 0; j < n; j++) {                \
    if (gone[j]) continue;                         \
    int32_t row = first + j;                       \
    double s = (sum);                              \
    if (closer(s, least)) { best = j; least = s; } \
    else if (preferred(s, least, row, first + best)) best = j; \
  }                                                \
  return best

// preferred reports whether a row with square a is as near as another one with square b,
// and can better run elsewhere.
static inline bool preferred(double a, double b, int32_t row, int32_t other) {
  return !closer(b, a) && relocates_better(table, row, other);
}

// nearest returns the row first+j, of the n not picked, that is nearest to the need; of
// equals the one that can best run elsewhere, then the first. At least one row is not
// picked.
static int32_t nearest(const bool *gone, int32_t first, int32_t n) {
  int32_t best = n;
  double least = __builtin_inf();
  const double **use = need.use, *left = need.left;
  if (need.count == 0) {
    for (best = 0; gone[best]; best++) continue;
    for (int32_t j = best + 1; j < n; j++)
      if (!gone[j] && relocates_better(table, first + j, first + best)) best = j;
    return best;
  }
  const double *u0 = use[0], n0 = left[0];
  if (need.count == 1) { NEAREST(square(u0, n0, row)); }
  const double *u1 = use[1], n1 = left[1];
  if (need.count == 2) { NEAREST(square(u0, n0, row) + square(u1, n1, row)); }
  const double *u2 = use[2], n2 = left[2];
  if (need.count == 3) { NEAREST(square(u0, n0, row) + square(u1, n1, row) + square(u2, n2, row)); }
  for (int32_t j = 0; j < n; j++) {
    if (gone[j]) continue;
    double s = square(u0, n0, first + j);
    for (int32_t k = 1; k < need.count; k++) s += square(use[k], left[k], first + j);
    if (closer(s, least)) {
      best = j;
      least = s;
    } else if (preferred(s, least, first + j, first + best)) {
      best = j;
    }
  }
  return best;
}

// pick_group picks rows of one priority until the option fits or all are
// picked.
static bool pick_group(cede_selection *out, int32_t from, int32_t to) {
  static cede_buffer memory; // the rows that were picked; all zero between groups
  int32_t n = to - from;
  bool *gone = cede_room(&memory, (uint32_t)n);
  if (!gone) return false;
  int32_t left = n;
  for (; left > 1 && !covered(); left--) {
    int32_t j = nearest(gone, from, n);
    gone[j] = true;
    pick(out, from + j);
    if (!covered()) need.count = subtract(need.use, need.left, need.count, from + j);
  }
  for (int32_t j = 0; j < n; j++) {
    if (!gone[j] && !covered()) { // the last one takes no search
      pick(out, from + j);
      if (!covered()) need.count = subtract(need.use, need.left, need.count, from + j);
    }
    gone[j] = false;
  }
  return true;
}

// select_any implements the rules for any number of dimensions and device requests.
static const char *select_any(const cede_candidates *in, cede_selection *out) {
  if (!lay_out((uint32_t)(in->dims + in->preemptor.requests))) return CEDE_NO_MEMORY;
  load(in);
  const int32_t *priority = in->rows.priority;
  for (int32_t i = 0; i < in->options; i++) {
    reset(i);
    int32_t end = in->first_row[i + 1];
    for (int32_t from = in->first_row[i], to; from < end && !covered(); from = to) {
      for (to = from + 1; to < end && priority[to] == priority[from];) to++;
      if (!pick_group(out, from, to)) return CEDE_NO_MEMORY;
    }
    cede_next(out);
  }
  return CEDE_OK;
}

// The same rules for up to FEW dimensions, no devices and up to 64 rows of one
// priority, which covers most calls: everything but the columns fits in
// registers, once the loops over dimensions are unrolled. A dimension counts
// while its need, or its lack, is above zero.
enum { FEW = 4 };

#define EACH_DIMENSION _Pragma("clang loop unroll(full)") for (int32_t d = 0; d < FEW; d++)

typedef struct {
  const double *use[FEW];
  double need[FEW], lack[FEW];
  const cede_rows *rows;
  const uint8_t *leaves;
  int32_t must;
  cede_selection out;
} few;

// take picks a row, and returns whether the option fits then.
static inline bool take(few *f, int32_t row) {
  cede_pick(&f->out, row);
  bool fits = true;
  EACH_DIMENSION {
    if (f->need[d] > 0 || f->lack[d] > 0) {
      double use = f->use[d][row];
      f->need[d] -= use;
      f->lack[d] -= use;
    }
    fits &= !(f->lack[d] > 0);
  }
  if (f->must > 0 && f->leaves[row]) f->must--;
  return fits && f->must == 0;
}

// nearest_of_few is nearest with a bit for each row that is gone.
static inline int32_t nearest_of_few(const few *f, uint64_t gone, int32_t first, int32_t n) {
  int32_t best = __builtin_ctzll(~gone);
  double least = __builtin_inf();
  for (int32_t j = best; j < n; j++) {
    if (gone >> j & 1) continue;
    double sum = 0;
    EACH_DIMENSION {
      if (f->need[d] > 0) sum += square(f->use[d], f->need[d], first + j);
    }
    if (closer(sum, least)) {
      best = j;
      least = sum;
    } else if (!closer(least, sum) && relocates_better(f->rows, first + j, first + best)) {
      best = j;
    }
  }
  return best;
}

static inline bool take_group(few *f, int32_t from, int32_t n) {
  uint64_t gone = 0;
  for (int32_t left = n; left > 1; left--) {
    int32_t j = nearest_of_few(f, gone, from, n);
    if (take(f, from + j)) return true;
    gone |= (uint64_t)1 << j;
  }
  return take(f, from + __builtin_ctzll(~gone));
}

// select_few returns false where a group is too large for it.
static bool select_few(const cede_candidates *in, cede_selection *out) {
  few f = {.rows = &in->rows, .leaves = in->rows.must_leave, .out = *out};
  const double *lack[FEW];
  double ask[FEW];
  EACH_DIMENSION {
    bool has = d < in->dims;
    f.use[d] = has ? cede_column(in->rows.use, d) : NULL;
    lack[d] = has ? cede_column(in->need, d) : NULL;
    ask[d] = has ? in->preemptor.ask[d] : 0;
  }
  const int32_t *priority = in->rows.priority;
  for (int32_t i = 0; i < in->options; i++) {
    bool fits = true;
    EACH_DIMENSION {
      f.need[d] = ask[d];
      f.lack[d] = lack[d] ? lack[d][i] : 0;
      fits &= !(f.lack[d] > 0);
    }
    f.must = f.leaves ? in->must_leave[i] : 0;
    fits &= f.must == 0;
    int32_t end = in->first_row[i + 1];
    for (int32_t from = in->first_row[i], to; from < end && !fits; from = to) {
      for (to = from + 1; to < end && priority[to] == priority[from];) to++;
      if (to - from > 64) return false;
      fits = take_group(&f, from, to - from);
    }
    cede_next(&f.out);
  }
  *out = f.out;
  return true;
}

static const char *select_victims(const cede_candidates *in, cede_selection *out) {
  if (in->dims <= FEW && in->preemptor.requests == 0 && select_few(in, out)) return CEDE_OK;
  return select_any(in, out);
}

// mean returns the mean of the parts of the ranking of option i.
static double mean(const cede_options *in, int32_t i) {
  double sum = in->fit_after[i], n = 1;
  for (int32_t k = 0; k < in->components.columns; k++)
    if (in->present[i] >> k & 1) {
      sum += cede_column(in->components, k)[i];
      n++;
    }
  return sum / n;
}

// relocation returns the tier of option i's victims: how many fit nowhere else, then the
// highest priority that the others would evict, then how many would evict.
static int64_t relocation(const cede_options *in, int32_t i) {
  if (!in->stranded) return 0;
  const int32_t most = (1 << 14) - 1;
  int64_t stranded = in->stranded[i] < most ? in->stranded[i] : most;
  int64_t displacing = in->displacing[i] < most ? in->displacing[i] : most;
  int64_t priority = displacing > 0 ? (int64_t)in->displaced_priority[i] - INT32_MIN + 1 : 0;
  return stranded << 48 | priority << 14 | displacing;
}

static const char *score_options(const cede_options *in, cede_option_scores *out) {
  for (int32_t i = 0; i < in->options; i++) {
    int32_t victims = in->victim_count[i];
    out->tier[0][i] = victims ? in->highest_priority[i] : INT64_MIN; // no eviction beats any
    out->tier[1][i] = victims;
    out->tier[2][i] = in->priority_sum[i];
    out->tier[3][i] = relocation(in, i);
    out->score[i] = mean(in, i);
  }
  return CEDE_OK;
}

// compare orders texts by their bytes.
static int compare(cede_text a, cede_text b) {
  for (uint32_t i = 0; i < a.length && i < b.length; i++)
    if (a.at[i] != b.at[i]) return (uint8_t)a.at[i] < (uint8_t)b.at[i] ? -1 : 1;
  return (a.length > b.length) - (a.length < b.length);
}

// leaves_before reports whether row x is evicted before row y.
static bool leaves_before(const cede_candidates *in, int32_t x, int32_t y) {
  const cede_rows *r = &in->rows;
  if (r->priority[x] != r->priority[y]) return r->priority[x] < r->priority[y];
  if (r->start[x] != r->start[y]) return r->start[x] > r->start[y];
  int names = compare(cede_text_of(&in->texts, r->job[x]), cede_text_of(&in->texts, r->job[y]));
  return names ? names > 0 : x < y;
}

// in_order returns the n rows from first on in the order of eviction; null if there
// is no memory. It merges runs of twice the length each time.
static const int32_t *in_order(const cede_candidates *in, int32_t first, int32_t n) {
  static cede_buffer memory;
  int32_t *from = cede_room(&memory, 2 * (uint32_t)n * sizeof *from);
  if (!from) return NULL;
  int32_t *to = from + n;
  for (int32_t k = 0; k < n; k++) from[k] = first + k;
  for (int32_t run = 1; run < n; run *= 2) {
    for (int32_t start = 0; start < n; start += 2 * run) {
      int32_t a = start, middle = start + run < n ? start + run : n;
      int32_t b = middle, end = middle + run < n ? middle + run : n;
      for (int32_t k = start; k < end; k++) {
        bool right = a == middle || (b < end && leaves_before(in, from[b], from[a]));
        to[k] = right ? from[b++] : from[a++];
      }
    }
    int32_t *swap = from;
    from = to;
    to = swap;
  }
  return from;
}

// rank ranks option i by its rows.
static void rank(const cede_candidates *in, int32_t i, int64_t *const tier[4]) {
  int64_t highest = INT32_MIN, sum = 0;
  for (int32_t row = in->first_row[i]; row < in->first_row[i + 1]; row++) {
    int64_t p = in->rows.priority[row];
    if (p > highest) highest = p;
    sum += p - INT32_MIN; // so that another victim never lowers the sum
  }
  tier[0][i] = in->first_row[i + 1] - in->first_row[i];
  tier[1][i] = highest;
  tier[2][i] = sum;
}

static const char *preempt_bindings(const cede_candidates *in, cede_binding_victims *out) {
  if (!lay_out((uint32_t)(in->dims + in->preemptor.requests))) return CEDE_NO_MEMORY;
  load(in);
  for (int32_t i = 0; i < in->options; i++) {
    int32_t first = in->first_row[i], n = in->first_row[i + 1] - first;
    const int32_t *rows = in_order(in, first, n);
    if (!rows) return CEDE_NO_MEMORY;
    reset(i);
    for (int32_t k = 0; k < n && !covered(); k++) pick(&out->selection, rows[k]);
    cede_next(&out->selection);
    rank(in, i, out->tier);
  }
  return CEDE_OK;
}

CEDE_POLICY(
    .name = "default", .version = "2", .delta = 10, .flags = CEDE_ASCENDING | CEDE_MONOTONE,
    .columns = CEDE_USE | CEDE_MUST_LEAVE | CEDE_DEVICE | CEDE_FIT | CEDE_RELOCATION,
    .select_victims = select_victims, .score_options = score_options, .preempt_bindings = preempt_bindings)
