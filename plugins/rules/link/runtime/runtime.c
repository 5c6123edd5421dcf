// The part of a rule policy that is the same for all rules, as a module without rules.
// Package link replaces the three functions at the end by the code of the rules, and
// writes the record at PROGRAM. build.sh compiles it to runtime.wasm.
//
// Frames are decoded and checked by cede.h, the library of policies in C. The runtime
// finds the columns that the rules read, computes the derived ones, and sorts.
#include "cede.h"

// PROGRAM is the address of the record that package link writes, with the constants of the
// rules behind it. It is in the lower half of the stack: see build.sh.
#define PROGRAM 1024

// The fields that need a column, in the order of package schema. A test compares them.
enum {
  PREEMPTOR_PRIORITY, PREEMPTOR_DELTA, PREEMPTOR_PORTS, PREEMPTOR_ATTEMPTS, PREEMPTOR_WAITING,
  PREEMPTOR_NAMESPACE, PREEMPTOR_JOB, PREEMPTOR_GROUP, PREEMPTOR_JOB_TYPE,
  VICTIM_PRIORITY, VICTIM_START, VICTIM_LOST_WORK, VICTIM_NAMESPACE, VICTIM_JOB, VICTIM_GROUP,
  VICTIM_EVICTIONS, VICTIM_EVICTION_LIMIT, VICTIM_MUST_LEAVE, VICTIM_SHARE, VICTIM_BUDGET_SLACK,
  VICTIM_NAMESPACE_SHARE, VICTIM_RELOCATION, VICTIM_DISPLACED_PRIORITY, VICTIM_DISPLACED_LOST_WORK,
  NODE_NAME,
  OPTION_HIGHEST_PRIORITY, OPTION_VICTIMS, OPTION_PRIORITY_SUM, OPTION_LOST_WORK, OPTION_START,
  OPTION_BUDGET_VIOLATIONS, OPTION_STRANDED, OPTION_DISPLACING, OPTION_DISPLACED_PRIORITY,
  OPTION_DISPLACED_LOST_WORK, OPTION_EXPECTED_LOST_WORK, OPTION_CASCADE_DEPTH, OPTION_EXPECTED_DELAY,
  OPTION_FIT_BEFORE, OPTION_FIT_AFTER, OPTION_RANK,
  OPTION_ANTI_AFFINITY, OPTION_AFFINITY, OPTION_SPREAD,
  FIELDS
};

// The fields with a name in brackets, in the order of package schema.
enum {
  PREEMPTOR_ASK, PREEMPTOR_LABELS, PREEMPTOR_ANNOTATIONS,
  VICTIM_USE, VICTIM_LABELS, VICTIM_ANNOTATIONS,
  NODE_CAPACITY, NODE_RESERVED, NODE_FREE, NODE_OWN, OPTION_NEED, OPTION_FREED, CLUSTER_CAPACITY,
};

typedef struct {
  uint32_t field; // of the second enumeration
  const char *at;
  uint32_t length;
} rule_lookup;

typedef struct {
  int64_t columns;
  uint64_t used[3]; // by function of the rules, bit k: field k of the first enumeration
  int32_t hooks, flags, delta;
  int32_t entries; // of order
  int32_t sorted;  // 1: the entries may not fit a tier and a score; the runtime then sorts
  int32_t lookups;
  const rule_lookup *lookup;
  const char *name, *version;
} rule_program;

#define program ((const rule_program *)PROGRAM)

// rule_inputs is the input of the functions of rules. Package link knows the offsets.
typedef struct {
  int64_t now;              // 0
  int32_t rows, options;    // 8, 12
  const int32_t *first_row; // 16
  uint32_t unused;
  const void *field[48];    // 24: the column of each field that is used
  const void *lookup[64];   // 216: the column of each lookup, or null
} rule_inputs;

static rule_inputs inputs;
static const cede_texts *texts;
static const cede_rows *rows;
static const cede_preemptor *preemptor;
static const char *missing; // why a column cannot be used

#define EXPORT(name) __attribute__((export_name(#name)))

// A text is its address and length in one number.
static uint64_t packed(cede_text t) { return (uint64_t)(uintptr_t)t.at << 32 | t.length; }
static cede_text unpacked(uint64_t t) { return (cede_text){(const char *)(uintptr_t)(t >> 32), (uint32_t)t}; }

// The fuel of each function below is bounded, whatever the texts and labels of a frame are:
// package link counts on it, see link/fuel.go. Texts therefore have at most MAX_TEXT bytes:
// of a longer name the last ones count, and a label with a longer value counts as absent.
// Of the labels of a row, which ascend by key, the first MAX_LABELS count.
#define MAX_TEXT 256
#define MAX_LABELS 511

static uint64_t name_of(cede_text t) {
  if (t.length > MAX_TEXT) t = (cede_text){t.at + t.length - MAX_TEXT, MAX_TEXT};
  return packed(t);
}

static uint64_t word(const char *at) {
  uint64_t w;
  __builtin_memcpy(&w, at, sizeof w);
  return w;
}

EXPORT(rule_text) uint64_t rule_text(int32_t id) { return name_of(cede_text_of(texts, id)); }

// rule_name returns the name of a job or group from its identifier: the part behind the
// last zero byte. It passes words without a zero byte, from the last one.
EXPORT(rule_name) uint64_t rule_name(int32_t id) {
  const uint64_t ones = 0x0101010101010101;
  cede_text t = cede_text_of(texts, id);
  uint32_t n = t.length, first = n > MAX_TEXT ? n - MAX_TEXT : 0;
  for (; n >= first + 8; n -= 8) {
    uint64_t w = word(t.at + n - 8);
    if ((w - ones) & ~w & ones << 7) break;
  }
  while (n > first && t.at[n - 1]) n--;
  return packed((cede_text){t.at + n, t.length - n});
}

// same reports whether n bytes are equal.
__attribute__((noinline)) static bool same(const char *a, const char *b, uint32_t n) {
  if (n < 8) {
    for (const char *end = a + n; a != end; a++, b++)
      if (*a != *b) return false;
    return true;
  }
  const char *last = a + n - 8;
  for (uint32_t way = (uint32_t)(b - a); a < last; a += 8)
    if (word(a) != word(a + way)) return false;
  return word(last) == word(b + n - 8);
}

EXPORT(rule_same) int32_t rule_same(uint64_t x, uint64_t y) {
  cede_text a = unpacked(x), b = unpacked(y);
  return x == y || (a.length == b.length && same(a.at, b.at, b.length));
}

EXPORT(rule_starts) int32_t rule_starts(uint64_t x, uint64_t y) {
  cede_text a = unpacked(x), b = unpacked(y);
  return a.length >= b.length && same(a.at, b.at, b.length);
}

EXPORT(rule_ends) int32_t rule_ends(uint64_t x, uint64_t y) {
  cede_text a = unpacked(x), b = unpacked(y);
  return a.length >= b.length && same(a.at + a.length - b.length, b.at, b.length);
}

// head returns the first bytes of a text, 8 at most, the first one in the lowest bits.
static uint64_t head(cede_text t) {
  if (t.length >= 8) return word(t.at);
  uint64_t w = 0;
  for (uint32_t n = t.length; n > 0; n--) w = w << 8 | (uint8_t)t.at[n - 1];
  return w;
}

// candidate returns the first position up to end at which 8 bytes are equal, in the bits of
// the mask.
__attribute__((noinline)) static const char *candidate(const char *p, const char *end, uint64_t mask, uint64_t first) {
  while (p != end && (word(p) & mask) != first) p++;
  return p;
}

// rule_contains compares 8 bytes at each position of a with the first ones of b, and all of b
// if these are equal.
EXPORT(rule_contains) int32_t rule_contains(uint64_t x, uint64_t y) {
  cede_text a = unpacked(x), b = unpacked(y);
  if (b.length > a.length) return 0;
  if (b.length == 0) return 1;
  uint64_t mask = b.length < 8 ? ((uint64_t)1 << 8 * b.length) - 1 : UINT64_MAX, first = head(b);
  const char *p = a.at, *last = p + a.length - b.length, *end = p + a.length - 7; // of positions with 8 bytes
  if (end > last) end = last + 1;
  uint64_t rest = head(a);
  if (a.length >= 8) {
    while ((p = candidate(p, end, mask, first)) != end) {
      if (same(p, b.at, b.length)) return 1;
      p++;
    }
    rest = word(a.at + a.length - 8) >> 8;
  }
  for (; p <= last; p++, rest >>= 8)
    if ((rest & mask) == first) return 1;
  return 0;
}

// position returns the position of a key among names from first to end, which ascend, or -1.
static int32_t position(cede_text key, const int32_t *names, uint32_t first, uint32_t end) {
  const cede_texts t = *texts;
  while (first < end) {
    uint32_t middle = (first + end) / 2, id = (uint32_t)names[middle], from = 0, length = 0;
    if (id && id < t.count) from = (uint32_t)t.end[id - 1], length = (uint32_t)t.end[id] - from; // text 0 is empty
    const char *a = t.bytes + from, *b = key.at;
    const char *last = a + (length < key.length ? length : key.length);
    while (last - a >= 8 && word(a) == word(b)) a += 8, b += 8;
    while (a != last && *a == *b) a++, b++;
    if (a == last && length == key.length) return (int32_t)middle;
    if (a == last ? length < key.length : (uint8_t)*a < (uint8_t)*b) first = middle + 1;
    else end = middle;
  }
  return -1;
}

// rule_label returns the label of lookup k of a row, or of the preemptor if the row is
// negative; 0 if there is none.
EXPORT(rule_label) uint64_t rule_label(int32_t k, int32_t row) {
  cede_text key = {program->lookup[k].at, program->lookup[k].length};
  int32_t from = 0, to = preemptor->labels.count;
  const int32_t *names = preemptor->labels.name, *values = preemptor->labels.value_text;
  if (row >= 0) {
    from = rows->first_label[row];
    to = rows->first_label[row + 1];
    names = rows->label_key;
    values = rows->label_value;
  }
  int32_t found = position(key, names, (uint32_t)from, (uint32_t)(to - from > MAX_LABELS ? from + MAX_LABELS : to));
  if (found < 0) return 0;
  cede_text value = cede_text_of(texts, values[found]);
  return value.length > MAX_TEXT ? 0 : packed(value);
}

EXPORT(rule_exp) double rule_exp(double x) { return cede_exp(x); }
EXPORT(rule_log) double rule_log(double x) { return cede_log(x); }
EXPORT(rule_pow) double rule_pow(double x, double y) { return cede_pow(x, y); }

// The functions of the rules. They are weak so that the compiler assumes nothing about
// them.
#define RULE(name) __attribute__((weak, noinline, export_name(#name)))
RULE(rule_eligible) void rule_eligible(const rule_inputs *in, int32_t *gap, int64_t *recheck) { (void)in, (void)gap, (void)recheck; }
RULE(rule_order) void rule_order(const rule_inputs *in, void *first, void *second) { (void)in, (void)first, (void)second; }
RULE(rule_direct) int32_t rule_direct(const rule_inputs *in, int64_t *tier, double *score) { (void)in, (void)tier, (void)score; return 1; }
RULE(rule_option) void rule_option(const rule_inputs *in, int64_t *tiers, int64_t *unused) { (void)in, (void)tiers, (void)unused; }

static int function; // that the inputs are for: 0 eligible, 1 order, 2 option

static bool used(int field) { return program->used[function] >> field & 1; }

// set sets the column of a field. It must exist if it has elements.
static void set(int field, const void *column, int32_t elements) {
  if (!used(field)) return;
  if (!column && elements > 0) missing = "the frame lacks a column that the rules read";
  inputs.field[field] = column;
}

// doubles returns an area for n doubles, all zero at first.
static double *doubles(cede_buffer *b, int32_t n) {
  double *at = cede_room(b, 8 * (uint32_t)(n > 0 ? n : 1));
  if (!at) missing = CEDE_NO_MEMORY;
  return at;
}

static const double *zeros(int32_t n) {
  static cede_buffer b;
  return doubles(&b, n);
}

static void set_shares(const cede_shared *s, int32_t dims, int32_t n) {
  static cede_buffer b;
  if (!used(VICTIM_SHARE)) return;
  double *share = doubles(&b, n), resources = 0;
  if (!share) return;
  if (dims > 0 && n > 0 && (!s->capacity || !rows->use.at)) missing = "the frame lacks a column that the rules read";
  if (missing) return;
  for (int32_t d = 0; d < dims && n > 0; d++) {
    double total = s->capacity[d];
    if (!(total > 0)) continue; // no ready node has it, so no row uses it
    const double *use = cede_column(rows->use, d);
    if (resources++ == 0)
      for (int32_t row = 0; row < n; row++) share[row] = 0 + use[row] / total;
    else
      for (int32_t row = 0; row < n; row++) share[row] += use[row] / total;
  }
  if (resources == 0)
    for (int32_t row = 0; row < n; row++) share[row] = 0;
  if (resources > 1)
    for (int32_t row = 0; row < n; row++) share[row] /= resources;
  set(VICTIM_SHARE, share, n);
}

// set_namespace_shares sets the largest share of any resource that the namespace of a row
// holds, divided by its weight.
static void set_namespace_shares(const cede_shared *s, int32_t dims, int32_t n) {
  static cede_buffer b, c, e;
  if (!used(VICTIM_NAMESPACE_SHARE)) return;
  double *share = doubles(&b, n), *of = doubles(&c, s->namespaces);
  // at holds the position of each namespace by its text. Other elements are arbitrary.
  int32_t *at = cede_room(&e, 4 * (texts->count + 1));
  if (!at) missing = CEDE_NO_MEMORY;
  if (!share || !of || !at) return;
  if (n > 0 && (!rows->namespace_name || (dims > 0 && (!s->capacity || (s->namespaces > 0 && !s->use.at)))))
    missing = "the frame lacks a column that the rules read";
  if (missing) return;
  for (int32_t k = s->namespaces - 1; k >= 0 && n > 0; k--) {
    if ((uint32_t)s->namespace_name[k] < texts->count) at[s->namespace_name[k]] = k;
    of[k] = 0;
    for (int32_t d = 0; d < dims; d++)
      if (s->capacity[d] > 0 && cede_column(s->use, d)[k] / s->capacity[d] > of[k]) of[k] = cede_column(s->use, d)[k] / s->capacity[d];
    if (s->weight[k] > 0) of[k] /= s->weight[k];
  }
  for (int32_t row = 0; row < n; row++) {
    int32_t name = rows->namespace_name[row], k = (uint32_t)name < texts->count ? at[name] : -1;
    share[row] = k >= 0 && k < s->namespaces && s->namespace_name[k] == name ? of[k] : 0;
  }
  set(VICTIM_NAMESPACE_SHARE, share, n);
}

// set_slack sets the least slack of the budgets that evicting a row charges.
static void set_slack(const cede_shared *s, int32_t n) {
  static cede_buffer b;
  if (!used(VICTIM_BUDGET_SLACK)) return;
  int32_t *slack = cede_room(&b, 4 * (uint32_t)(n > 0 ? n : 1));
  if (!slack) missing = CEDE_NO_MEMORY;
  else if (n > 0 && !rows->first_budget) missing = "the frame lacks a column that the rules read";
  if (missing) return;
  for (int32_t row = 0; row < n; row++) {
    slack[row] = INT32_MAX;
    for (int32_t i = rows->first_budget[row]; i < rows->first_budget[row + 1]; i++)
      if (s->budget_slack[rows->budget[i]] < slack[row]) slack[row] = s->budget_slack[rows->budget[i]];
  }
  set(VICTIM_BUDGET_SLACK, slack, n);
}

static void set_preemptor(const cede_preemptor *p) {
  static int32_t words[4];
  static int64_t waiting;
  static uint64_t names[4];
  words[0] = p->priority, words[1] = p->delta, words[2] = p->ports, words[3] = p->attempts;
  waiting = p->waiting;
  names[0] = name_of(p->namespace_name), names[1] = name_of(p->job), names[2] = name_of(p->group), names[3] = name_of(p->job_type);
  for (int k = 0; k < 4; k++) set(PREEMPTOR_PRIORITY + k, &words[k], 1);
  set(PREEMPTOR_WAITING, &waiting, 1);
  for (int k = 0; k < 4; k++) set(PREEMPTOR_NAMESPACE + k, &names[k], 1);
  preemptor = p;
}

static void set_rows(const cede_rows *r, const cede_shared *s, int32_t dims) {
  int32_t n = r->count;
  rows = r;
  set(VICTIM_PRIORITY, r->priority, n);
  set(VICTIM_START, r->start, n);
  set(VICTIM_LOST_WORK, r->lost_work, n);
  set(VICTIM_NAMESPACE, r->namespace_name, n);
  set(VICTIM_JOB, r->job, n);
  set(VICTIM_GROUP, r->group, n);
  set(VICTIM_EVICTIONS, r->evictions, n);
  set(VICTIM_EVICTION_LIMIT, r->eviction_limit, n);
  set(VICTIM_MUST_LEAVE, r->must_leave, n);
  set(VICTIM_RELOCATION, r->relocation, n);
  set(VICTIM_DISPLACED_PRIORITY, r->displaced_priority, n);
  set(VICTIM_DISPLACED_LOST_WORK, r->displaced_lost_work, n);
  set_shares(s, dims, n);
  set_namespace_shares(s, dims, n);
  set_slack(s, n);
}

static int32_t find(cede_text key, const int32_t *names, int32_t n) {
  for (int32_t k = 0; k < n; k++)
    if (cede_same(cede_text_of(texts, names[k]), key)) return k;
  return -1;
}

// column returns column d of a table, or zeros if there is no such dimension.
static const void *column(cede_table t, int32_t d, int32_t n) {
  if (d < 0) return zeros(n);
  if (!t.at && n > 0) missing = "the frame lacks a column that the rules read";
  return t.at ? cede_column(t, d) : zeros(n);
}

static const void *element(const double *v, int32_t d) {
  if (d < 0) return zeros(1);
  if (!v) missing = "the frame lacks a column that the rules read";
  return v ? v + d : zeros(1);
}

// tables are those that lookups refer to.
typedef struct {
  const int32_t *dim;
  int32_t dims, options;
  cede_table need, freed, capacity, reserved, free, own;
  const double *totals;
  bool candidates;
} rule_tables;

static const void *looked_up(const rule_lookup *l, const rule_tables *t) {
  cede_text key = {l->at, l->length};
  int32_t d = find(key, t->dim, t->dims), k;
  switch (l->field) {
    case PREEMPTOR_ASK: return element(preemptor->ask, d);
    case CLUSTER_CAPACITY: return element(t->totals, d);
    case PREEMPTOR_ANNOTATIONS:
      k = position(key, preemptor->annotations.name, 0, (uint32_t)preemptor->annotations.count);
      return k < 0 ? NULL : preemptor->annotations.value + k;
  }
  if (!t->candidates) return NULL; // the rules of options do not read it
  switch (l->field) {
    case VICTIM_USE: return column(rows->use, d, rows->count);
    case NODE_CAPACITY: return column(t->capacity, d, t->options);
    case NODE_RESERVED: return column(t->reserved, d, t->options);
    case NODE_FREE: return column(t->free, d, t->options);
    case NODE_OWN: return column(t->own, d, t->options);
    case OPTION_NEED: return column(t->need, d, t->options);
    case OPTION_FREED: return column(t->freed, d, t->options);
    case VICTIM_ANNOTATIONS:
      k = position(key, rows->annotation_name, 0, (uint32_t)rows->annotations.columns);
      return k < 0 ? NULL : cede_column(rows->annotations, k);
    case VICTIM_LABELS:
      if (!rows->first_label && rows->count > 0) missing = "the frame lacks a column that the rules read";
  }
  return NULL;
}

static void look_up(const rule_tables *t) {
  for (int32_t k = 0; k < program->lookups; k++) inputs.lookup[k] = looked_up(&program->lookup[k], t);
}

static const char *load_candidates(const cede_candidates *in, int for_function) {
  missing = NULL;
  function = for_function;
  texts = &in->texts;
  inputs.now = in->now;
  inputs.rows = in->rows.count;
  inputs.options = in->options;
  inputs.first_row = in->first_row;
  set_preemptor(&in->preemptor);
  set_rows(&in->rows, &in->shared, in->dims);
  set(NODE_NAME, in->place, in->options);
  look_up(&(rule_tables){in->dim, in->dims, in->options, in->need, in->freed, in->capacity, in->reserved, in->free, in->own, in->shared.capacity, true});
  return missing;
}

// set_components sets the rank of each option and its parts; a part that is not present is 0.
static void set_components(const cede_options *in) {
  static cede_buffer b;
  if (!used(OPTION_RANK) && !used(OPTION_ANTI_AFFINITY) && !used(OPTION_AFFINITY) && !used(OPTION_SPREAD)) return;
  int32_t n = in->options;
  double *rank = doubles(&b, 4 * n);
  if (n > 0 && (!in->fit_after || !in->components.at)) missing = "the frame lacks a column that the rules read";
  if (missing) return;
  for (int32_t i = 0; i < n; i++) {
    double sum = in->fit_after[i], parts = 1;
    for (int32_t k = 0; k < 3; k++) {
      bool present = in->present && in->present[i] >> k & 1;
      double part = present ? cede_column(in->components, k)[i] : 0;
      rank[(k + 1) * n + i] = part;
      if (present) sum += part, parts++;
    }
    rank[i] = sum / parts;
  }
  set(OPTION_RANK, rank, n);
  for (int32_t k = 0; k < 3; k++) set(OPTION_ANTI_AFFINITY + k, rank + (k + 1) * n, n);
}

// set_highest sets the highest priority of the victims; the lowest number if there are none.
static void set_highest(const cede_options *in) {
  static cede_buffer b;
  if (!used(OPTION_HIGHEST_PRIORITY)) return;
  int32_t n = in->options, *highest = cede_room(&b, 4 * (uint32_t)(n > 0 ? n : 1));
  if (!highest) missing = CEDE_NO_MEMORY;
  if (missing) return;
  for (int32_t i = 0; i < n; i++) highest[i] = in->victim_count[i] ? in->highest_priority[i] : INT32_MIN;
  set(OPTION_HIGHEST_PRIORITY, highest, n);
}

static const char *load_options(const cede_options *in) {
  static const cede_rows none;
  int32_t n = in->options;
  missing = NULL;
  function = 2;
  texts = &in->texts;
  rows = &none;
  inputs.now = in->now;
  inputs.rows = 0;
  inputs.options = n;
  set_preemptor(&in->preemptor);
  set(NODE_NAME, in->place, n);
  set_highest(in);
  set(OPTION_VICTIMS, in->victim_count, n);
  set(OPTION_PRIORITY_SUM, in->priority_sum, n);
  set(OPTION_LOST_WORK, in->lost_work, n);
  set(OPTION_START, in->start, n);
  set(OPTION_BUDGET_VIOLATIONS, in->violations, n);
  set(OPTION_STRANDED, in->stranded, n);
  set(OPTION_DISPLACING, in->displacing, n);
  set(OPTION_DISPLACED_PRIORITY, in->displaced_priority, n);
  set(OPTION_DISPLACED_LOST_WORK, in->displaced_lost_work, n);
  set(OPTION_EXPECTED_LOST_WORK, in->expected_lost_work, n);
  set(OPTION_CASCADE_DEPTH, in->cascade_depth, n);
  set(OPTION_EXPECTED_DELAY, in->expected_delay, n);
  set(OPTION_FIT_BEFORE, in->fit_before, n);
  set(OPTION_FIT_AFTER, in->fit_after, n);
  set_components(in);
  look_up(&(rule_tables){.dim = in->dim, .dims = in->dims, .options = n, .totals = in->shared.capacity});
  return missing;
}

static const char *priority_delta(const cede_candidates *in, cede_gaps *out) {
  const char *error = load_candidates(in, 0);
  if (error == CEDE_OK) rule_eligible(&inputs, out->gap, &out->recheck.at);
  return error;
}

// before reports whether row a precedes row b by the entries of order.
static bool before(const int64_t *keys, int32_t a, int32_t b) {
  for (int32_t k = 0; k < program->entries; k++) {
    int64_t x = keys[k * inputs.rows + a], y = keys[k * inputs.rows + b];
    if (x != y) return x < y;
  }
  return false;
}

// sort sorts rows, and keeps the order of equal ones. spare has as many elements.
static int32_t *sort(int32_t *list, int32_t *spare, int32_t n, const int64_t *keys) {
  for (int32_t width = 1; width < n; width *= 2) {
    for (int32_t from = 0; from < n; from += 2 * width) {
      int32_t middle = from + width < n ? from + width : n, end = from + 2 * width < n ? from + 2 * width : n;
      for (int32_t i = from, j = middle, k = from; k < end; k++)
        spare[k] = i < middle && (j >= end || !before(keys, list[j], list[i])) ? list[i++] : list[j++];
    }
    int32_t *sorted = spare;
    spare = list;
    list = sorted;
  }
  return list;
}

// direct uses the two entries of the rows from first to end as tier and score. It returns
// false if a number of the second entry cannot be a score without rounding. An entry
// without a value is behind all others.
static bool direct(const int64_t *keys, int32_t first, int32_t end, int64_t *tier, double *score) {
  const int64_t *second = keys + inputs.rows, exact = (int64_t)1 << 53;
  if (program->entries != 2) return false;
  for (int32_t row = first; row < end; row++)
    if (second[row] != INT64_MAX && (second[row] < -exact || second[row] > exact)) return false;
  for (int32_t row = first; row < end; row++) {
    tier[row] = keys[row];
    score[row] = second[row] == INT64_MAX ? 0x1.fffffffffffffp1023 : (double)second[row];
  }
  return true;
}

// rank sets the tier of each row to its position by the entries of order. Equal rows have
// equal tiers.
static const char *rank(const cede_candidates *in, int64_t *tier, double *score) {
  static cede_buffer b, c;
  int32_t n = in->rows.count;
  if (program->entries == 2 && !rule_direct(&inputs, tier, score)) return CEDE_OK; // no number is rounded
  int64_t *keys = cede_room(&b, 8 * (uint32_t)(n * program->entries + 1));
  int32_t *list = cede_room(&c, 8 * (uint32_t)(n + 1));
  if (!keys || !list) return CEDE_NO_MEMORY;
  rule_order(&inputs, keys, NULL);
  for (int32_t i = 0; i < in->options; i++) {
    int32_t from = in->first_row[i], rows = in->first_row[i + 1] - from;
    if (direct(keys, from, from + rows, tier, score)) continue;
    for (int32_t k = 0; k < rows; k++) list[k] = from + k;
    int32_t *sorted = sort(list, list + rows, rows, keys);
    for (int32_t k = 0, at = 0; k < rows; k++) {
      if (k > 0 && before(keys, sorted[k - 1], sorted[k])) at = k;
      tier[sorted[k]] = at, score[sorted[k]] = 0;
    }
  }
  return CEDE_OK;
}

static const char *score_victims(const cede_candidates *in, cede_victim_scores *out) {
  const char *error = load_candidates(in, 1);
  if (error != CEDE_OK) return error;
  if (program->sorted) return rank(in, out->tier, out->score);
  rule_order(&inputs, out->tier, out->score);
  return CEDE_OK;
}

static const char *score_options(const cede_options *in, cede_option_scores *out) {
  const char *error = load_options(in);
  if (error == CEDE_OK) rule_option(&inputs, out->tier[0], NULL);
  return error;
}

static const cede_policy *policy(void) {
  static cede_policy p;
  p.name = program->name;
  p.version = program->version;
  p.columns = program->columns;
  p.flags = program->flags;
  p.delta = program->delta;
  p.priority_delta = program->hooks & 1 ? priority_delta : NULL;
  p.score_victims = program->hooks & 2 ? score_victims : NULL;
  p.score_options = program->hooks & 8 ? score_options : NULL;
  return &p;
}

#define ENTRY(symbol, answer) \
  EXPORT(symbol) int32_t symbol(uint8_t *frame, uint32_t length) { return answer(policy(), frame, length); }

// Rules without the columns of versions 1.3 and 1.4 load in older servers.
EXPORT(cede_abi_version) int32_t cede_abi_version(void) {
  return 1 << 16 | (program->columns & CEDE_LOOKAHEAD ? 4 : program->columns & CEDE_RELOCATION ? 3 : 1);
}
EXPORT(cede_alloc) void *cede_alloc(uint32_t size) { return cede__frame_room(size); }
ENTRY(cede_describe, cede__describe)
ENTRY(cede_priority_delta, cede__priority_delta)
ENTRY(cede_score_victims, cede__score_victims)
ENTRY(cede_score_options, cede__score_options)
