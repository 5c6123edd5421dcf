// cede.h: a preemption policy for cede in C, as a WebAssembly module.
//
//   #include "cede.h"
//
//   static const char *score_victims(const cede_candidates *in, cede_victim_scores *out) {
//     for (int32_t row = 0; row < in->rows.count; row++)
//       out->score[row] = (double)in->rows.lost_work[row];
//     return CEDE_OK;
//   }
//
//   CEDE_POLICY(.name = "least-lost", .version = "1", .columns = CEDE_LOST_WORK, .score_victims = score_victims)
//
// The library is this header alone and needs no C library. README.md describes how
// to compile and test a policy; ../ABI.md specifies the wire format.
//
// Shapes. All input is in columns that point into the frame. They are valid until
// the hook returns, and belong to the host. A column of rows has
// rows.count elements, a column of options as many as there are options, and a
// table has a column for each dimension or device request: cede_column(t, k).
// Rows of option i are first_row[i] to first_row[i+1], by priority ascending
// and in tie order within a priority. Optional columns are null unless
// .columns requests them.
//
// Units. Resource amounts are doubles that hold whole numbers in the units of
// the cluster (millicores, MiB, Mbit/s). Times are ns since 1970, durations ns.
//
// Determinism. Answers must have the same bits on every machine, natively and in
// Wasm: compute with cede_exp, cede_log, cede_pow and cede_sqrt, keep no state
// between calls that could change an answer, and never write NaN.
#ifndef CEDE_H
#define CEDE_H

#ifndef __wasm32__
#error "cede.h makes WebAssembly modules: compile with clang --target=wasm32"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma STDC FP_CONTRACT OFF // x*y+z rounds twice, as it does everywhere else

// CEDE__COLD prevents the inlining of functions that run once in a call.
#define CEDE__COLD __attribute__((noinline, unused))

// ---------------------------------------------------------------------------
// Input of hooks
// ---------------------------------------------------------------------------

// CEDE_OK is the return value of a hook that has answered. Any other value is an
// error message, such as the result of cede_fail.
#define CEDE_OK ((const char *)0)

// CEDE_NO_MEMORY is the return value of a hook if cede_room has returned null.
#define CEDE_NO_MEMORY ((const char *)1)

// cede_text is a text in UTF-8 without a terminating zero.
typedef struct {
  const char *at;
  uint32_t length;
} cede_text;

// cede_texts is the table that columns of texts refer to: cede_text_of.
typedef struct {
  const int32_t *end;
  const char *bytes;
  uint32_t count, size;
} cede_texts;

// cede_table is a column per dimension or per device request, each of length
// elements, one after the other: cede_column.
typedef struct {
  const double *at;
  int32_t columns, length;
} cede_table;

// cede_int_table is cede_table of whole numbers.
typedef struct {
  const int32_t *at;
  int32_t columns, length;
} cede_int_table;

// cede_pairs is a list of labels (value_text) or of annotations (value), by the
// number of their names' texts.
typedef struct {
  int32_t count;
  const int32_t *name;
  const int32_t *value_text;
  const double *value;
} cede_pairs;

// cede_preemptor is the group that needs capacity.
typedef struct {
  cede_text namespace_name, job, group;
  cede_text job_type;               // service, batch, system, sysbatch
  int32_t priority;
  int32_t delta;                    // base gap: that of the configuration, else .delta
  const double *ask;                // [dims]
  int32_t ports;                    // host ports needed
  int32_t requests;                 // number of device requests
  const int32_t *device, *device_count; // [requests]: identifier (text), instances
  int64_t waiting;                  // ns that its group has waited
  int32_t attempts;                 // evaluations that did not place the whole group
  cede_pairs labels, annotations;   // with CEDE_LABEL, CEDE_ANNOTATION
} cede_preemptor;

// cede_rows is a table of allocations: candidates, or the victims of options.
typedef struct {
  int32_t count;
  const int32_t *priority;
  cede_table use;                                // CEDE_USE: [dims][rows]
  const int64_t *start;                          // CEDE_START: ns since 1970
  const int64_t *lost_work;                      // CEDE_LOST_WORK: ns of work that an eviction now loses
  const int32_t *namespace_name, *job, *group;   // CEDE_JOB: texts; job and group are unique IDs, not names
  const int32_t *evictions, *eviction_limit;     // CEDE_EVICTION: of its group in this plan; limit 0: none
  const uint8_t *must_leave;                     // CEDE_MUST_LEAVE: 1 port, 2 separation
  cede_table devices;                            // CEDE_DEVICE: [requests][rows], instances held
  const int32_t *first_label, *label_key, *label_value; // CEDE_LABEL: pairs first_label[row] to first_label[row+1]
  const int32_t *annotation_name;                // CEDE_ANNOTATION: texts, one per column of annotations
  cede_table annotations;                        // [names][rows], NaN where a row has none
  // CEDE_RELOCATION: where the row could run if it were evicted alone, CEDE_FITS_*; the
  // highest priority, and the lost work in ns, that it would evict there in its turn:
  // INT32_MIN and 0 unless it is CEDE_FITS_BY_EVICTING
  const uint8_t *relocation;
  const int32_t *displaced_priority;
  const int64_t *displaced_lost_work;
  const int32_t *first_budget, *budget;          // CEDE_BUDGET: evicting the row costs budgets first_budget[row] to first_budget[row+1] one each: rows of shared.budget_slack
} cede_rows;

// cede_shared is the same for every option: CEDE_SHARED, or CEDE_TOTALS for the
// capacity alone, and CEDE_BUDGET for the budgets alone. capacity is null if the
// host has no such tables.
typedef struct {
  const double *capacity; // [dims], of all ready nodes
  int32_t namespaces;
  const int32_t *namespace_name; // text
  const double *weight;
  cede_table use; // [dims][namespaces]
  int32_t budgets;
  const int32_t *budget_name;   // text: a unique ID, not a name
  const int32_t *budget_slack;  // how many more rows may be evicted before it is overrun
  const uint8_t *budget_strict; // 1: the host refuses evictions that overrun it
} cede_shared;

// cede_candidates is the input of priority_delta, score_victims, select_victims and
// preempt_bindings: options that do not fit yet, with the rows that may be evicted
// for them. For preempt_bindings an option is a member cluster, and a row is the
// replicas of another binding there.
typedef struct {
  int64_t now;
  int32_t options, dims;
  cede_preemptor preemptor;
  const int32_t *dim;        // [dims], text
  const int32_t *first_row;  // [options+1]
  cede_table need;           // [dims][options]: the missing amount; zero or less: none
  cede_table freed;          // [dims][options]: the amount that earlier picks free
  cede_table device_need;    // CEDE_DEVICE: [requests][options]
  const int32_t *must_leave; // CEDE_MUST_LEAVE: rows of the option that must leave
  const int32_t *place;      // CEDE_PLACE: text, the node
  cede_table capacity, reserved, free, own; // CEDE_CAPACITY: [dims][options]
  cede_rows rows;
  cede_shared shared;
  cede_texts texts;
} cede_candidates;

// cede_options is the input of score_options: options that fit once their victims
// are evicted.
typedef struct {
  int64_t now;
  int32_t options, dims;
  cede_preemptor preemptor;
  const int32_t *dim;
  const int32_t *node;             // equal values: the same node
  const int32_t *highest_priority; // of the victims
  const int32_t *victim_count;
  const int64_t *priority_sum;     // of the victims
  const int64_t *lost_work;        // CEDE_LOST_WORK: ns, all victims together
  const int64_t *start;            // CEDE_START: earliest start among the victims with the highest priority; null from an older host
  const int32_t *violations;       // CEDE_BUDGET: victims whose eviction overruns a budget
  // CEDE_RELOCATION: victims with CEDE_FITS_NOWHERE, and with CEDE_FITS_BY_EVICTING; the
  // highest priority that the latter would evict, INT32_MIN if there are none, and the lost
  // work of all that they would evict, ns
  const int32_t *stranded, *displacing, *displaced_priority;
  const int64_t *displaced_lost_work;
  // CEDE_LOOKAHEAD: what follows from the option if no other work arrives: lost work of all
  // evictions, ns; length of the longest chain of evictions; time for which evicted
  // instances do not run, ns. Zero where the host has not played it.
  const int64_t *expected_lost_work;
  const int32_t *cascade_depth;
  const int64_t *expected_delay;
  const int32_t *place;            // CEDE_PLACE: text
  cede_table device_need;          // CEDE_DEVICE: [requests][options], before any eviction
  cede_int_table device_group;     // CEDE_DEVICE: [requests][options]
  const double *fit_before, *fit_after; // CEDE_FIT: in [0, 1]
  cede_table components;           // CEDE_FIT: anti-affinity, affinity, spread
  const uint8_t *present;          // CEDE_FIT: the components that count, bits 0 to 2
  cede_table need;                 // CEDE_VICTIM: [dims][options], before any eviction
  const int32_t *first_victim;     // CEDE_VICTIM: [options+1] into victims
  cede_rows victims;               // CEDE_VICTIM, with the requested columns of rows
  cede_shared shared;
  cede_texts texts;
} cede_options;

// cede_column returns column k of a table.
static inline const double *cede_column(cede_table t, int32_t k) { return t.at + (size_t)k * (size_t)t.length; }

// cede_int_column returns column k of a table of whole numbers.
static inline const int32_t *cede_int_column(cede_int_table t, int32_t k) { return t.at + (size_t)k * (size_t)t.length; }

// cede_text_of returns the text with a number, or an empty one if it is not in the table.
static inline cede_text cede_text_of(const cede_texts *t, int32_t id) {
  if ((uint32_t)id >= t->count) return (cede_text){"", 0};
  uint32_t from = id ? (uint32_t)t->end[id - 1] : 0, to = (uint32_t)t->end[id];
  if (from > to || to > t->size) return (cede_text){"", 0};
  return (cede_text){t->bytes + from, to - from};
}

// cede_literal returns a C string as a text.
CEDE__COLD static cede_text cede_literal(const char *s) {
  uint32_t n = 0;
  while (s[n]) n++;
  return (cede_text){s, n};
}

// cede_same reports whether two texts are equal.
CEDE__COLD static bool cede_same(cede_text a, cede_text b) {
  if (a.length != b.length) return false;
  for (uint32_t i = 0; i < a.length; i++)
    if (a.at[i] != b.at[i]) return false;
  return true;
}

// ---------------------------------------------------------------------------
// Answers of hooks
// ---------------------------------------------------------------------------

// cede_recheck holds the time at which the answer may change by time alone.
typedef struct {
  int64_t at;
} cede_recheck;

// cede_recheck_at requests another evaluation at a time. The earliest request counts.
static inline void cede_recheck_at(cede_recheck *r, int64_t time) {
  if (r->at == 0 || time < r->at) r->at = time;
}

// cede_gaps is the answer of priority_delta: gap[row] is the least difference of
// priorities for which the row may be evicted. On entry all are the base gap.
typedef struct {
  int32_t *gap;
  cede_recheck recheck;
} cede_gaps;

// cede_victim_scores is the answer of score_victims: rows are evicted by lower tier,
// then by lower score, then in order. CEDE_NEVER excludes a row. On entry all are 0.
typedef struct {
  int64_t *tier;
  double *score;
  cede_recheck recheck;
} cede_victim_scores;

// CEDE_NEVER is the score of a row that must not be evicted.
#define CEDE_NEVER ((double)__builtin_inf())

// cede_option_scores is the answer of score_options: the best option has the lowest
// tiers, compared in order, then the highest score, then the lowest position. On
// entry all are 0.
typedef struct {
  int64_t *tier[4];
  double *score; // finite
  cede_recheck recheck;
} cede_option_scores;

// cede_selection is the answer of select_victims: cede_pick the rows of the first
// option in the order of eviction, cede_next, those of the second, and so on.
typedef struct {
  int32_t *picks, *ends;
  uint32_t room, used, options, closed;
  cede_recheck recheck;
} cede_selection;

// cede_pick adds a row to the current option.
static inline void cede_pick(cede_selection *s, int32_t row) {
  if (s->used < s->room) s->picks[s->used] = row;
  s->used++; // counts beyond the capacity, so that the host reports the fault
}

// cede_next closes the current option. Call it once for every option.
static inline void cede_next(cede_selection *s) {
  if (s->closed < s->options) s->ends[s->closed] = (int32_t)s->used;
  s->closed++;
}

// cede_binding_victims is the answer of preempt_bindings: picks as in select_victims,
// and tiers that rank the options by their rows. The host calls the hook twice: for
// the victims of each option, and then, with these rows alone, for the best option.
typedef struct {
  cede_selection selection;
  int64_t *tier[4]; // lower first, compared in order; on entry all are 0
} cede_binding_victims;

// ---------------------------------------------------------------------------
// Settings
// ---------------------------------------------------------------------------

// cede_kind is the type of a setting.
typedef enum {
  CEDE_KIND_BOOL = 1,
  CEDE_KIND_INTEGER,
  CEDE_KIND_NUMBER,
  CEDE_KIND_DURATION, // ns
  CEDE_KIND_TEXT,
  CEDE_KIND_TEXTS,
  CEDE_KIND_NUMBERS, // named numbers
} cede_kind;

// cede_setting declares one key of the configuration. The host parses and validates
// the configuration by it, and adds defaults.
typedef struct {
  const char *name; // lower camel case
  cede_kind kind;
  const char *doc;      // one sentence for operators, with the unit
  const char *fallback; // the default in the form of a configuration: "10m", "0.5", "a,b", "x=1,y=2"; null: zero
  bool required;
  const char *min, *max;      // CEDE_BETWEEN, CEDE_AT_LEAST; of a duration in seconds
  const char *const *one_of;  // of texts; ends with null
  const char *range;          // CEDE_RANGE: values that cede policy tune tries; null: none
  const char *const *choices; // the same as a list in the form of a configuration; ends with null
} cede_setting;

// CEDE_BETWEEN and CEDE_AT_LEAST are inclusive limits of a setting.
#define CEDE_BETWEEN(low, high) .min = #low, .max = #high
#define CEDE_AT_LEAST(low) .min = #low

// CEDE_RANGE holds the lowest and the highest value that cede policy tune tries, in the
// form of CEDE_BETWEEN.
#define CEDE_RANGE(low, high) .range = "[" #low "," #high "]"

// cede_config is the configuration; cede_bool and the other getters read it. It is
// valid while configure runs: copy texts that are needed later with cede_keep.
typedef struct cede_config {
  uint32_t count;
  const int32_t *name, *item, *text;
  const uint8_t *kind;
  const int64_t *integer;
  const double *number;
  cede_texts texts;
} cede_config;

// ---------------------------------------------------------------------------
// The policy
// ---------------------------------------------------------------------------

// Optional columns, for .columns. Request only the columns that the policy reads:
// the host reuses answers while every requested column is unchanged.
enum {
  CEDE_USE = 1 << 0,
  CEDE_START = 1 << 1,
  CEDE_LOST_WORK = 1 << 2,
  CEDE_JOB = 1 << 3,
  CEDE_EVICTION = 1 << 4,
  CEDE_MUST_LEAVE = 1 << 5,
  CEDE_DEVICE = 1 << 6,
  CEDE_CAPACITY = 1 << 7,
  CEDE_PLACE = 1 << 8,
  CEDE_LABEL = 1 << 9,
  CEDE_ANNOTATION = 1 << 10,
  CEDE_SHARED = 1 << 11,
  CEDE_VICTIM = 1 << 12,
  CEDE_FIT = 1 << 13,
  CEDE_TIME = 1 << 14, // answers depend on now
  CEDE_TOTALS = 1 << 15,
  CEDE_BUDGET = 1 << 16,
  // A weight, but no reason to exclude a candidate: an excluded candidate is offered again
  // if its own node changes, but not if others change.
  CEDE_RELOCATION = 1 << 17,
  // expected_* and cascade_depth of options. score_options is called about all options, with
  // zeros in them, and then about the few best, which the host has played.
  CEDE_LOOKAHEAD = 1 << 18,
};

// Values of cede_rows.relocation, in the order of preference.
enum {
  CEDE_FITS_ELSEWHERE = 0,   // another node has enough free capacity
  CEDE_FITS_BY_EVICTING = 1, // another node has, once allocations that the row may evict have left
  CEDE_FITS_NOWHERE = 2,     // no other node that the host has examined
};

// Properties of the policy and requests to the host, for .flags.
enum {
  CEDE_ADAPTIVE = 1,       // call score_victims again after each pick
  CEDE_ASCENDING = 2,      // victims are in order of ascending priority, before any other criterion
  CEDE_KEEP_REDUNDANT = 4, // redundant victims of select_victims are evicted too, if the operator grants it
  // preempt_bindings gets an elastic binding as two rows: the replicas above its
  // minimum, followed by the remaining ones, if any. If an answer lists the second,
  // the first is evicted as well.
  CEDE_ELASTIC = 16,
  // If no single cluster can hold all missing replicas of a divided binding,
  // preempt_bindings is called for victims on several clusters.
  CEDE_MULTI_CLUSTER = 32,
  // score_options, which reads CEDE_START, selects the option with the fewest overrun
  // budgets (if it reads them), then the lowest highest_priority, then the lowest sum of
  // priorities, each raised by 2^31, then the fewest victims, then the latest start. The
  // host then evaluates only nodes that may be selected.
  CEDE_LEAST_FIRST = 64,
  // Within a priority, the allocation that started last is evicted first, of equals the
  // first in order; budgets are charged in reverse order; and of options that are equal by
  // CEDE_LEAST_FIRST the first is selected. With CEDE_ASCENDING and CEDE_LEAST_FIRST the
  // host computes the cost of an option itself and evaluates still fewer nodes.
  CEDE_YOUNGEST_FIRST = 128,
  // The tiers of score_options depend on victim_count, highest_priority, priority_sum (each
  // priority raised by 2^31), budget_violations, lost_work, start and the columns of
  // CEDE_RELOCATION and CEDE_LOOKAHEAD alone, and do not fall if one of these rises, or if
  // start falls. The host then omits topology domains of a gang
  // that cannot have lower tiers than the best one found.
  CEDE_MONOTONE = 256,
};

// cede_policy holds the fields of CEDE_POLICY. A policy has any of the hooks; the rules
// named default replace the missing ones.
typedef struct {
  const char *name, *version; // the policy's own version, for operators
  int32_t delta;              // base gap if the configuration sets none
  int64_t columns;
  int32_t flags;

  const cede_setting *settings; // CEDE_SETTINGS(array)
  uint32_t setting_count;
  const char *(*configure)(const cede_config *);

  const char *(*priority_delta)(const cede_candidates *, cede_gaps *);
  const char *(*score_victims)(const cede_candidates *, cede_victim_scores *);
  const char *(*select_victims)(const cede_candidates *, cede_selection *);
  const char *(*score_options)(const cede_options *, cede_option_scores *);
  const char *(*preempt_bindings)(const cede_candidates *, cede_binding_victims *);
} cede_policy;

#define CEDE_SETTINGS(array) .settings = (array), .setting_count = sizeof(array) / sizeof *(array)

// CEDE_POLICY defines the exports of a module, with the fields of cede_policy. Use it
// once in a module, after the hooks.
#define CEDE_POLICY(...)                                                                        \
  static const cede_policy cede__policy = {__VA_ARGS__};                                        \
  CEDE__EXPORT(cede_abi_version) int32_t cede_abi_version(void) { return 1 << 16 | 4; }         \
  CEDE__EXPORT(cede_alloc) void *cede_alloc(uint32_t size) { return cede__frame_room(size); }   \
  CEDE__ENTRY(cede_describe, cede__describe)                                                    \
  CEDE__ENTRY(cede_configure, cede__configure)                                                  \
  CEDE__ENTRY(cede_priority_delta, cede__priority_delta)                                        \
  CEDE__ENTRY(cede_score_victims, cede__score_victims)                                          \
  CEDE__ENTRY(cede_select_victims, cede__select_victims)                                        \
  CEDE__ENTRY(cede_score_options, cede__score_options)                                          \
  CEDE__ENTRY(cede_preempt_bindings, cede__preempt_bindings)

#define CEDE__EXPORT(symbol) __attribute__((export_name(#symbol)))
#define CEDE__ENTRY(symbol, answer) \
  CEDE__EXPORT(symbol) int32_t symbol(uint8_t *frame, uint32_t length) { return answer(&cede__policy, frame, length); }

// ---------------------------------------------------------------------------
// Memory
// ---------------------------------------------------------------------------

extern uint8_t __heap_base; // defined by the linker: the end of data and stack

// State that all files of a module share.
__attribute__((weak)) uintptr_t cede__top;       // memory below it is allocated
__attribute__((weak)) uint8_t *cede__frame;      // the buffer that cede_alloc has returned
__attribute__((weak)) uint32_t cede__frame_size; // its size
__attribute__((weak)) char cede__words[1025];    // the message of cede_fail, as long as a host accepts

// cede__take allocates memory that is never freed, aligned to 16; null if there is none.
CEDE__COLD static void *cede__take(uint64_t n) {
  uint64_t top = cede__top ? cede__top : (uint64_t)(uintptr_t)&__heap_base;
  top = (top + 15) & ~(uint64_t)15;
  n = (n + 15) & ~(uint64_t)15;
  uint64_t have = (uint64_t)__builtin_wasm_memory_size(0) << 16, want = top + n;
  if (want > (uint64_t)1 << 32) return NULL;
  if (want > have && __builtin_wasm_memory_grow(0, (want - have + 65535) >> 16) == SIZE_MAX) return NULL;
  cede__top = (uintptr_t)want;
  return (void *)(uintptr_t)top;
}

// cede__frame_room is cede_alloc. The buffer is extended if it is last in memory;
// otherwise a new one of twice the size is allocated, so that abandoned memory is
// never more than memory in use.
static void *cede__frame_room(uint32_t size) {
  if (size <= cede__frame_size) return cede__frame;
  if (cede__frame && (uintptr_t)cede__frame + cede__frame_size == cede__top) {
    if (!cede__take((uint64_t)size - cede__frame_size)) return NULL;
  } else {
    uint64_t twice = 2 * (uint64_t)cede__frame_size;
    uint8_t *at = cede__take(size > twice ? size : twice);
    if (!at) return NULL;
    cede__frame = at;
  }
  cede__frame_size = (uint32_t)(cede__top - (uintptr_t)cede__frame);
  return cede__frame;
}

// cede_buffer is memory for intermediate results that a policy reuses, all zero at
// first: static cede_buffer b;
typedef struct {
  void *at;
  uint32_t size;
} cede_buffer;

// cede_room makes a buffer at least n bytes large and returns it, aligned to 16;
// null if there is no memory. Its content is lost if it grows. It allocates memory
// only then, so that calls cost nothing once the buffer is large enough.
static inline void *cede_room(cede_buffer *b, uint32_t n) {
  if (n <= b->size && b->at) return b->at;
  uint64_t size = 2 * (uint64_t)b->size;
  if (size < n) size = n;
  void *at = cede__take(size);
  if (!at) return NULL;
  b->at = at;
  b->size = (uint32_t)size;
  return at;
}

// cede_keep copies a text to permanent memory: for configure and not for hooks, since
// the memory is never freed. If there is no memory, the copy is empty.
static inline cede_text cede_keep(cede_text t) {
  char *at = cede__take(t.length);
  if (!at) return (cede_text){"", 0};
  __builtin_memcpy(at, t.at, t.length);
  return (cede_text){at, t.length};
}

// ---------------------------------------------------------------------------
// Messages
// ---------------------------------------------------------------------------

// cede_fail returns the message "what: detail" as the result of a hook.
static inline const char *cede_fail(const char *what, cede_text detail) {
  uint32_t n = 0, last = sizeof cede__words - 1;
  while (*what && n < last) cede__words[n++] = *what++;
  for (const char *colon = ": "; *colon && n < last;) cede__words[n++] = *colon++;
  for (uint32_t i = 0; i < detail.length && n < last;) cede__words[n++] = detail.at[i++];
  cede__words[n] = 0;
  return cede__words;
}

// Levels of cede_say.
enum { CEDE_DEBUG, CEDE_INFO, CEDE_WARN, CEDE_ERROR };

__attribute__((import_module("cede_v1"), import_name("log"))) void cede__log(int32_t level, const char *at, uint32_t length);

// cede_say writes a line to the host's log, which truncates long lines and drops lines
// above a rate. A module imports it only if it calls it.
static inline void cede_say(int32_t level, cede_text line) { cede__log(level, line.at, line.length); }

// ---------------------------------------------------------------------------
// Arithmetic with the same bits everywhere: a port of sdk/fmath, which documents
// its precision and the results for special values.
// ---------------------------------------------------------------------------

// BEGIN tables: written by go generate in sdk/fmath
#define CEDE__EXP_PER_STEP 0x1.71547652b82fep+07
#define CEDE__EXP_STEP_HI 0x1.62e42ffp-08
#define CEDE__EXP_STEP_LO -0x1.718432a1b0e26p-42
#define CEDE__EXP10_PER_STEP 0x1.a934f0979a371p+08
#define CEDE__EXP10_STEP_HI 0x1.3441350ap-09
#define CEDE__EXP10_STEP_LO -0x1.0c0219dc1da99p-46
#define CEDE__EXP10_C1 0x1.26bb1bbb55516p+01
#define CEDE__EXP10_C2 0x1.53524c73cea69p+01
#define CEDE__EXP10_C3 0x1.0470591de2ca4p+01
#define CEDE__EXP10_C4 0x1.2bd7609fd98c4p+00
#define CEDE__EXP10_C5 0x1.1429ffd1d4d76p-01
#define CEDE__LN2_HI 0x1.62e42fefa38p-01
#define CEDE__LN2_LO 0x1.ef35793c7673p-45
static const uint64_t cede__exp_bits[128] = {
  0x3ff0000000000000, 0x3ff0163da9fb3335, 0x3ff02c9a3e778061, 0x3ff04315e86e7f85,
  0x3ff059b0d3158574, 0x3ff0706b29ddf6de, 0x3ff0874518759bc8, 0x3ff09e3ecac6f383,
  0x3ff0b5586cf9890f, 0x3ff0cc922b7247f7, 0x3ff0e3ec32d3d1a2, 0x3ff0fb66affed31b,
  0x3ff11301d0125b51, 0x3ff12abdc06c31cc, 0x3ff1429aaea92de0, 0x3ff15a98c8a58e51,
  0x3ff172b83c7d517b, 0x3ff18af9388c8dea, 0x3ff1a35beb6fcb75, 0x3ff1bbe084045cd4,
  0x3ff1d4873168b9aa, 0x3ff1ed5022fcd91d, 0x3ff2063b88628cd6, 0x3ff21f49917ddc96,
  0x3ff2387a6e756238, 0x3ff251ce4fb2a63f, 0x3ff26b4565e27cdd, 0x3ff284dfe1f56381,
  0x3ff29e9df51fdee1, 0x3ff2b87fd0dad990, 0x3ff2d285a6e4030b, 0x3ff2ecafa93e2f56,
  0x3ff306fe0a31b715, 0x3ff32170fc4cd831, 0x3ff33c08b26416ff, 0x3ff356c55f929ff1,
  0x3ff371a7373aa9cb, 0x3ff38cae6d05d866, 0x3ff3a7db34e59ff7, 0x3ff3c32dc313a8e5,
  0x3ff3dea64c123422, 0x3ff3fa4504ac801c, 0x3ff4160a21f72e2a, 0x3ff431f5d950a897,
  0x3ff44e086061892d, 0x3ff46a41ed1d0057, 0x3ff486a2b5c13cd0, 0x3ff4a32af0d7d3de,
  0x3ff4bfdad5362a27, 0x3ff4dcb299fddd0d, 0x3ff4f9b2769d2ca7, 0x3ff516daa2cf6642,
  0x3ff5342b569d4f82, 0x3ff551a4ca5d920f, 0x3ff56f4736b527da, 0x3ff58d12d497c7fd,
  0x3ff5ab07dd485429, 0x3ff5c9268a5946b7, 0x3ff5e76f15ad2148, 0x3ff605e1b976dc09,
  0x3ff6247eb03a5585, 0x3ff6434634ccc320, 0x3ff6623882552225, 0x3ff68155d44ca973,
  0x3ff6a09e667f3bcd, 0x3ff6c012750bdabf, 0x3ff6dfb23c651a2f, 0x3ff6ff7df9519484,
  0x3ff71f75e8ec5f74, 0x3ff73f9a48a58174, 0x3ff75feb564267c9, 0x3ff780694fde5d3f,
  0x3ff7a11473eb0187, 0x3ff7c1ed0130c132, 0x3ff7e2f336cf4e62, 0x3ff80427543e1a12,
  0x3ff82589994cce13, 0x3ff8471a4623c7ad, 0x3ff868d99b4492ed, 0x3ff88ac7d98a6699,
  0x3ff8ace5422aa0db, 0x3ff8cf3216b5448c, 0x3ff8f1ae99157736, 0x3ff9145b0b91ffc6,
  0x3ff93737b0cdc5e5, 0x3ff95a44cbc8520f, 0x3ff97d829fde4e50, 0x3ff9a0f170ca07ba,
  0x3ff9c49182a3f090, 0x3ff9e86319e32323, 0x3ffa0c667b5de565, 0x3ffa309bec4a2d33,
  0x3ffa5503b23e255d, 0x3ffa799e1330b358, 0x3ffa9e6b5579fdbf, 0x3ffac36bbfd3f37a,
  0x3ffae89f995ad3ad, 0x3ffb0e07298db666, 0x3ffb33a2b84f15fb, 0x3ffb59728de5593a,
  0x3ffb7f76f2fb5e47, 0x3ffba5b030a1064a, 0x3ffbcc1e904bc1d2, 0x3ffbf2c25bd71e09,
  0x3ffc199bdd85529c, 0x3ffc40ab5fffd07a, 0x3ffc67f12e57d14b, 0x3ffc8f6d9406e7b5,
  0x3ffcb720dcef9069, 0x3ffcdf0b555dc3fa, 0x3ffd072d4a07897c, 0x3ffd2f87080d89f2,
  0x3ffd5818dcfba487, 0x3ffd80e316c98398, 0x3ffda9e603db3285, 0x3ffdd321f301b460,
  0x3ffdfc97337b9b5f, 0x3ffe264614f5a129, 0x3ffe502ee78b3ff6, 0x3ffe7a51fbc74c83,
  0x3ffea4afa2a490da, 0x3ffecf482d8e67f1, 0x3ffefa1bee615a27, 0x3fff252b376bba97,
  0x3fff50765b6e4540, 0x3fff7bfdad9cbe14, 0x3fffa7c1819e90d8, 0x3fffd3c22b8f71f1,
};
static const double cede__exp_tail[128] = {
  0x0p+00, 0x1.b3b4f1a88bf6ep-54, -0x1.160139cd8dc5dp-56, -0x1.05e7a108766d1p-54,
  0x1.cd2523567f613p-55, -0x1.bce8023f98efap-55, 0x1.0f74e61e6c861p-57, 0x1.0a3e45b33d399p-54,
  0x1.79aa65d837b6dp-54, 0x1.eb51a92fdeffcp-55, 0x1.ebe3d702f9cd1p-60, -0x1.a033489906e0bp-57,
  -0x1.556522a2fbd0ep-54, -0x1.080ef8c4eea55p-58, -0x1.1c923b9d5f416p-54, 0x1.0d3e3e95c55afp-55,
  -0x1.01b15eaa59348p-55, -0x1.f1ff055de323dp-55, 0x1.b898c3f1353bfp-55, -0x1.6d99c7611eb26p-54,
  0x1.aecf73e3a2f6p-54, -0x1.fe782cb86389dp-55, 0x1.a6f4144a6c38dp-55, 0x1.07a05b0e4047dp-55,
  0x1.68efde3a8a894p-54, 0x1.75e18f274487dp-55, 0x1.0472b981fe7f2p-55, -0x1.6b87b3f71085ep-54,
  0x1.2f7e16d09ab31p-55, -0x1.d219b1a6fbffap-60, 0x1.b3782720c0ab4p-55, 0x1.e149289cecb8fp-57,
  0x1.34d754db0abb6p-55, 0x1.64201e2ac744cp-55, 0x1.fdd395dd3f84ap-55, -0x1.6a3803b8e5b04p-55,
  -0x1.24aedcc4b5068p-54, -0x1.907f81b512d8ep-54, -0x1.1d1e83e9436d2p-56, -0x1.91919b3ce1b15p-54,
  0x1.59f48a72a4c6dp-55, -0x1.312607a28698ap-54, -0x1.8a78f4817895bp-58, -0x1.c2c9b67499a1bp-56,
  0x1.363ed60c2ac11p-59, 0x1.666093b0664efp-54, 0x1.ecce1daa10379p-57, 0x1.3ff8e3f0f123p-54,
  0x1.690cebb7aafbp-56, 0x1.31dbdeb54e077p-54, -0x1.f94340071a38ep-55, -0x1.7deccdc93a349p-55,
  -0x1.8dec6bd0f385fp-56, -0x1.61246ec7b5cf6p-55, 0x1.3350518fdd78ep-54, 0x1.b98b72f8a9b05p-56,
  0x1.063e1e21c5409p-54, 0x1.4c7855019c6eap-60, 0x1.432e62b64c035p-54, -0x1.ce44a6199769fp-55,
  -0x1.c33c53bef4da8p-55, -0x1.45378892be9aep-55, -0x1.3cedd78565858p-54, 0x1.710aa807e1964p-58,
  -0x1.3b3efbf5e2228p-54, -0x1.a12ad8734b982p-57, -0x1.367efb86da9eep-57, -0x1.0dc3d54e08851p-55,
  -0x1.81f647e5a3ecfp-56, -0x1.6ee4ac08b7dbp-55, -0x1.619321e55e68ap-55, 0x1.09ccb5e09d4d3p-54,
  -0x1.b32dcb94da51dp-56, 0x1.4ecfd5467c06bp-54, 0x1.5ebe1abd66c55p-57, -0x1.8a1c52fb3cf42p-55,
  -0x1.369b6f13b3734p-54, -0x1.05e843a19ff1ep-55, -0x1.4d450d872576ep-54, 0x1.0ad675b0e8ap-54,
  0x1.db72fc1f0eab4p-55, -0x1.5b6609cc5e7ffp-57, 0x1.bf68359f35f44p-56, -0x1.3091fa71e3d83p-54,
  -0x1.da9b88b6c1e29p-58, -0x1.c23f97c90b959p-57, -0x1.2434322f4f9aap-54, -0x1.5ca6cd7668e4bp-55,
  0x1.1affc2b91ce27p-56, 0x1.dd235e10a73bbp-57, -0x1.7c50422622263p-55, 0x1.b1c86e3e231d5p-55,
  -0x1.1bbd1d3bcbb15p-54, 0x1.0cc319cee31d2p-54, 0x1.469846e735ab3p-55, -0x1.2dfcd978e9db4p-55,
  0x1.c1a7792cb3387p-55, -0x1.07b8f4ad1d9fap-54, -0x1.5c3d956dcaebap-58, -0x1.0a40e3da6f64p-54,
  -0x1.8d6f438ad9334p-57, -0x1.1eee26b588a35p-54, 0x1.4ffd70a5fddcdp-56, -0x1.1bdfbfa9298acp-54,
  0x1.36eae30af0cb3p-56, 0x1.ee3325c9ffd94p-55, 0x1.4e08fd10959acp-55, 0x1.3cdaf384e1a67p-57,
  0x1.76b2c6c921968p-57, -0x1.08a1883ccb5d2p-55, -0x1.fad5d3ffffa6fp-55, -0x1.00dae3875a949p-54,
  0x1.4a385a63d07a7p-56, -0x1.2919e2040220fp-55, 0x1.e5a50d5c192acp-55, 0x1.43a59ac016b4bp-55,
  -0x1.2d52107b43e1fp-55, -0x1.92ab93b470dc9p-55, 0x1.4b604603a88d3p-56, 0x1.3c5ec519d7271p-55,
  -0x1.ff7128fd391fp-55, -0x1.dae98e223747dp-55, 0x1.ec3bc41aa2008p-55, 0x1.42b94c3a9eb32p-55,
  0x1.a64a931d185eep-55, -0x1.e37bae43be3edp-55, 0x1.7893b4d91cd9dp-56, 0x1.305c14160cc89p-58,
};
static const double cede__log_table[128][3] = {
  {0x1p+00, 0x0p+00, 0x0p+00},
  {0x1.fap-01, 0x1.82448a388p-07, 0x1.4554412c584ep-44},
  {0x1.f6p-01, 0x1.432a92598p-06, 0x1.98139928637fep-47},
  {0x1.f28p-01, 0x1.b5cc258b7p-06, 0x1.8e611b8afbfe8p-46},
  {0x1.ee8p-01, 0x1.1ce5a62bcp-05, 0x1.a9cc78d8df999p-44},
  {0x1.ebp-01, 0x1.5715c4c04p-05, -0x1.8888ddfc47628p-44},
  {0x1.e78p-01, 0x1.91b073efd8p-05, -0x1.9d7c53f76ca96p-46},
  {0x1.e38p-01, 0x1.d52ed6406p-05, -0x1.3c85d2a29bbd6p-44},
  {0x1.ep-01, 0x1.08598b59e4p-04, -0x1.7e5dd7009902cp-46},
  {0x1.dc8p-01, 0x1.26536c3d8cp-04, 0x1.b4bac097c5ba3p-47},
  {0x1.d9p-01, 0x1.4485e03dbcp-04, 0x1.fad46e8d26ab7p-44},
  {0x1.d6p-01, 0x1.5e95a4d978p-04, 0x1.1cb7ce1d17171p-44},
  {0x1.d28p-01, 0x1.7d33687c28p-04, 0x1.3c88c3e706706p-44},
  {0x1.cfp-01, 0x1.9c0c32d4d4p-04, -0x1.ab7c09e838668p-44},
  {0x1.ccp-01, 0x1.b6ac88dad4p-04, 0x1.b1bdff50225c7p-44},
  {0x1.c88p-01, 0x1.d5f556592p-04, 0x1.0e239cc185469p-44},
  {0x1.c58p-01, 0x1.f0f70cdd98p-04, 0x1.2e31f6c272c1ep-44},
  {0x1.c28p-01, 0x1.06135354d4p-03, 0x1.6304628340ee9p-44},
  {0x1.bf8p-01, 0x1.13c2605c3ap-03, -0x1.cf5fdd94f6509p-45},
  {0x1.bc8p-01, 0x1.2188fd9808p-03, -0x1.b3a1e7f50c701p-44},
  {0x1.b98p-01, 0x1.2f677cbbcp-03, 0x1.52b302160f40dp-44},
  {0x1.b68p-01, 0x1.3d5e3126bcp-03, 0x1.3fb2f85096c4bp-46},
  {0x1.b38p-01, 0x1.4b6d6fefe2p-03, 0x1.522ecf56e7952p-46},
  {0x1.b08p-01, 0x1.59958ff1d6p-03, -0x1.a1d059769ca05p-44},
  {0x1.ad8p-01, 0x1.67d6e9d786p-03, -0x1.11e8830a706d3p-44},
  {0x1.abp-01, 0x1.73cb9074fep-03, -0x1.d66a90d0005a6p-44},
  {0x1.a8p-01, 0x1.823c16551ap-03, 0x1.e0ddb9a631e83p-46},
  {0x1.a58p-01, 0x1.8e588ebac2p-03, 0x1.b7d5cab2d114p-44},
  {0x1.a3p-01, 0x1.9a8778debap-03, 0x1.470fa3efec39p-44},
  {0x1.ap-01, 0x1.a93ed3c8aep-03, -0x1.8724350562169p-45},
  {0x1.9d8p-01, 0x1.b5971a213ap-03, 0x1.9b50e83aa91dfp-44},
  {0x1.9bp-01, 0x1.c2028ab18p-03, -0x1.92e0ee55c7ac6p-45},
  {0x1.988p-01, 0x1.ce816157f2p-03, -0x1.9e0aba2099515p-45},
  {0x1.96p-01, 0x1.db13db0d48p-03, 0x1.2806a847527e6p-44},
  {0x1.938p-01, 0x1.e7ba35eb78p-03, -0x1.d5eee23793649p-47},
  {0x1.91p-01, 0x1.f474b134ep-03, -0x1.bae49f1df7b5ep-44},
  {0x1.8e8p-01, 0x1.00a1c6addap-02, 0x1.1cd8d688b9e18p-44},
  {0x1.8cp-01, 0x1.07138604d6p-02, -0x1.e76324e912b17p-44},
  {0x1.898p-01, 0x1.0d8fb813ebp-02, 0x1.ee8c88753fa35p-46},
  {0x1.878p-01, 0x1.12c77cd007p-02, 0x1.3b2948a11f797p-46},
  {0x1.85p-01, 0x1.1956d3b9bcp-02, 0x1.7d2f73ad1aa14p-45},
  {0x1.828p-01, 0x1.1ff0fe7cf4p-02, 0x1.e9d5b513ff0c1p-44},
  {0x1.808p-01, 0x1.25410494e5p-02, 0x1.b1d7ac0ef77f2p-44},
  {0x1.7ep-01, 0x1.2bef07cdc9p-02, 0x1.a9cfa4a5004f4p-45},
  {0x1.7cp-01, 0x1.314f1e1d36p-02, -0x1.8e27ad3213cb8p-45},
  {0x1.798p-01, 0x1.3811728565p-02, -0x1.a71e493a0702bp-45},
  {0x1.778p-01, 0x1.3d81fb5947p-02, -0x1.22c7c2a9d37a4p-45},
  {0x1.758p-01, 0x1.42f9f3ff62p-02, 0x1.906440f7d3354p-44},
  {0x1.738p-01, 0x1.487970e958p-02, 0x1.dc1b8465cf25fp-44},
  {0x1.71p-01, 0x1.4f637ebbaap-02, -0x1.fc158cb3124b9p-44},
  {0x1.6fp-01, 0x1.54f431b7bep-02, 0x1.a8954c0910952p-46},
  {0x1.6dp-01, 0x1.5a8cadbbeep-02, -0x1.7c79b0af7ecf8p-48},
  {0x1.6bp-01, 0x1.602d08af09p-02, 0x1.ebe9176df3f65p-46},
  {0x1.69p+00, -0x1.5ff3070a79p-02, -0x1.e9e439f105039p-45},
  {0x1.67p+00, -0x1.5a42ab0f4dp-02, 0x1.e63af2df7ba69p-50},
  {0x1.654p+00, -0x1.5541aec91cp-02, 0x1.816aadc72eeb9p-48},
  {0x1.634p+00, -0x1.4f81fe4764p-02, 0x1.7fcf6434ff08dp-45},
  {0x1.614p+00, -0x1.49b9feb7c1p-02, -0x1.dac1c58ab60d7p-44},
  {0x1.5f8p+00, -0x1.44a41b463cp-02, -0x1.1ee28f37cf612p-44},
  {0x1.5d8p+00, -0x1.3ecc460ef6p-02, 0x1.6028627c1300fp-47},
  {0x1.5bcp+00, -0x1.39a8619f45p-02, -0x1.8ee51937354f5p-46},
  {0x1.59cp+00, -0x1.33c05f128ep-02, 0x1.2b906380e1a7dp-45},
  {0x1.58p+00, -0x1.2e8e2bae12p-02, 0x1.67b1e99b72bd8p-45},
  {0x1.564p+00, -0x1.29552f81ffp-02, -0x1.48d301771c408p-44},
  {0x1.548p+00, -0x1.241558bfd1p-02, -0x1.00fff3228fcadp-44},
  {0x1.52cp+00, -0x1.1ece95528bp-02, 0x1.84e7b09b4a3b8p-46},
  {0x1.51p+00, -0x1.1980d2dd42p-02, -0x1.b7b3a7a361c9ap-45},
  {0x1.4f4p+00, -0x1.142bfeb9ap-02, -0x1.1ce6185b58a9ep-44},
  {0x1.4d8p+00, -0x1.0ed005f658p-02, 0x1.2dc75285aa803p-45},
  {0x1.4bcp+00, -0x1.096cd55591p-02, -0x1.f998d20550a31p-44},
  {0x1.4a4p+00, -0x1.04c8de1842p-02, 0x1.fe6ba512ceb86p-46},
  {0x1.488p+00, -0x1.feb0233e6p-03, -0x1.f316e32d5e8c7p-45},
  {0x1.46cp+00, -0x1.f3bfa934d6p-03, -0x1.d9f2a937b903bp-45},
  {0x1.454p+00, -0x1.ea5349e23ap-03, -0x1.81b934c73ccb5p-44},
  {0x1.43cp+00, -0x1.e0dbc3d92ap-03, -0x1.59233f0529bf1p-44},
  {0x1.42p+00, -0x1.d5c216b4fcp-03, 0x1.1ba91bbca681bp-45},
  {0x1.408p+00, -0x1.cc320c0176p-03, -0x1.409039a653794p-45},
  {0x1.3fp+00, -0x1.c2968558c2p-03, 0x1.cfd73dee38a4p-45},
  {0x1.3d4p+00, -0x1.b7526a22e4p-03, -0x1.c0dbf2e78549p-45},
  {0x1.3bcp+00, -0x1.ad9da1f828p-03, 0x1.882b7c803f05p-44},
  {0x1.3a4p+00, -0x1.a3dd04b938p-03, -0x1.97da1366e2c5ap-45},
  {0x1.38cp+00, -0x1.9a10756988p-03, -0x1.64aa6242cd098p-45},
  {0x1.374p+00, -0x1.9037d6a18p-03, -0x1.30dea57c1c8d9p-45},
  {0x1.35cp+00, -0x1.86530a8c7p-03, -0x1.98bb0cb4ea3e3p-44},
  {0x1.348p+00, -0x1.7e0afd630cp-03, -0x1.39e7c1d8f1034p-46},
  {0x1.33p+00, -0x1.740f8f5404p-03, 0x1.0b66c99018aa1p-44},
  {0x1.318p+00, -0x1.6a079d0f7ap-03, -0x1.5a3f8448d14f5p-44},
  {0x1.3p+00, -0x1.5ff3070a7ap-03, 0x1.8586f183bebf2p-44},
  {0x1.2ecp+00, -0x1.5782cb3092p-03, 0x1.3a46351794442p-44},
  {0x1.2d4p+00, -0x1.4d56b5798ep-03, -0x1.8058015a96555p-44},
  {0x1.2cp+00, -0x1.44d2b6ccb8p-03, 0x1.70cc16135783cp-46},
  {0x1.2a8p+00, -0x1.3a8eb2d31ap-03, -0x1.bafb77d5d503ep-46},
  {0x1.294p+00, -0x1.31f693eb1ap-03, 0x1.a6726e5a396fbp-45},
  {0x1.27cp+00, -0x1.279a300ab4p-03, -0x1.ef432b3235108p-44},
  {0x1.268p+00, -0x1.1eed90e2dcp-03, -0x1.615637097648fp-46},
  {0x1.254p+00, -0x1.16377fb124p-03, -0x1.91e1abf41763ep-47},
  {0x1.24p+00, -0x1.0d77e7cd08p-03, -0x1.cb2cd2ee2f482p-44},
  {0x1.22cp+00, -0x1.04aeb449f6p-03, -0x1.afa9065ccd35cp-45},
  {0x1.214p+00, -0x1.f42dba3a24p-04, 0x1.312b732df6c0dp-44},
  {0x1.2p+00, -0x1.e27076e2bp-04, 0x1.a342c2af0003cp-45},
  {0x1.1ecp+00, -0x1.d09f72b4c4p-04, -0x1.048c000354e33p-45},
  {0x1.1d8p+00, -0x1.beba818148p-04, 0x1.89b78b6df1f57p-44},
  {0x1.1c4p+00, -0x1.acc1768434p-04, 0x1.aa783a0b7fa4cp-45},
  {0x1.1bp+00, -0x1.9ab4246204p-04, 0x1.8a64826787061p-45},
  {0x1.1ap+00, -0x1.8c345d6318p-04, -0x1.b20f5acb42a66p-44},
  {0x1.18cp+00, -0x1.7a0216f648p-04, -0x1.e124ca18418ffp-44},
  {0x1.178p+00, -0x1.67bb0726ecp-04, -0x1.f724b69ef5912p-49},
  {0x1.164p+00, -0x1.555efe40b4p-04, -0x1.0b4978c868e23p-44},
  {0x1.15p+00, -0x1.42edcbea64p-04, -0x1.bc0eeea7c9acdp-46},
  {0x1.14p+00, -0x1.341d7961bcp-04, -0x1.1d0929983761p-44},
  {0x1.12cp+00, -0x1.2185b3b75cp-04, 0x1.e3189f8f32304p-44},
  {0x1.11cp+00, -0x1.129644403p-04, 0x1.d53bb751aa773p-44},
  {0x1.108p+00, -0x1.ffae9119b8p-05, -0x1.303374262c554p-45},
  {0x1.0f4p+00, -0x1.da0478be38p-05, -0x1.252c7b1f6fe05p-45},
  {0x1.0e4p+00, -0x1.bbc2bfc45p-05, 0x1.7d18691417dafp-46},
  {0x1.0d4p+00, -0x1.9d644fdff8p-05, -0x1.13c90539a473bp-44},
  {0x1.0cp+00, -0x1.77458f633p-05, 0x1.181dce586af09p-44},
  {0x1.0bp+00, -0x1.58a5bafc9p-05, 0x1.b2b739570ad39p-45},
  {0x1.09cp+00, -0x1.32348c7p-05, -0x1.696db90b1e49fp-45},
  {0x1.08cp+00, -0x1.1352378598p-05, 0x1.c1ac3b71fa59bp-46},
  {0x1.07cp+00, -0x1.e8a3ee30dp-06, 0x1.1a9fa3de539p-45},
  {0x1.06cp+00, -0x1.aa6721ee8p-06, -0x1.ad4eb5c5af494p-45},
  {0x1.058p+00, -0x1.5c45a51b9p-06, 0x1.63bb6216d87d8p-45},
  {0x1.048p+00, -0x1.1d7f7eb9fp-06, 0x1.4193a83fcc7a6p-46},
  {0x1.038p+00, -0x1.bcf712c74p-07, -0x1.c25e097bd9771p-46},
  {0x1.028p+00, -0x1.3e7295d26p-07, 0x1.609c1ff29a114p-45},
  {0x1.018p+00, -0x1.7ee11ebd8p-08, -0x1.749d3c2d23a07p-47},
  {0x1p+00, 0x0p+00, 0x0p+00},
};
// END tables

#define CEDE__ROUND 0x1.8p52 // adding and subtracting it rounds to a whole number

static inline double cede__float(uint64_t bits) {
  double x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

static inline uint64_t cede__bits(double x) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

// cede__power2 returns 2^n for n from -1022 to 1023.
static inline double cede__power2(int64_t n) { return cede__float((uint64_t)(n + 1023) << 52); }

// cede__exp_term returns e^z-1 for small z.
static inline double cede__exp_term(double z) {
  double z2 = z * z;
  return z + z2 * (1.0 / 2 + z * (1.0 / 6)) + z2 * z2 * (1.0 / 24 + z * (1.0 / 120));
}

// cede__exp10_term returns 10^r-1 for small r.
static inline double cede__exp10_term(double r) {
  double r2 = r * r;
  return r * CEDE__EXP10_C1 + r2 * (CEDE__EXP10_C2 + r * CEDE__EXP10_C3) + r2 * r2 * (CEDE__EXP10_C4 + r * CEDE__EXP10_C5);
}

// cede__exp_scale returns 2^(k/128) * (1+p) for results that a double may not hold
// with full precision: it computes in the normal range and scales last.
static inline double cede__exp_scale(int64_t k, double p) {
  double m = cede__float(cede__exp_bits[k & 127]), y = m + m * (cede__exp_tail[k & 127] + p);
  int64_t exponent = k >> 7;
  if (exponent > 0) return y * 0x1p100 * cede__power2(exponent - 100);
  return y * cede__power2(exponent + 100) * 0x1p-100;
}

// cede__exp_fast is the same for results in the normal range.
static inline double cede__exp_fast(int64_t k, double p) {
  double scale = cede__float(cede__exp_bits[k & 127] + ((uint64_t)(k >> 7) << 52));
  return scale + scale * (cede__exp_tail[k & 127] + p);
}

// cede__exp_of returns e^(x+lo), where lo is below the precision of x.
static inline double cede__exp_of(double x, double lo) {
  double n = x * CEDE__EXP_PER_STEP + CEDE__ROUND - CEDE__ROUND;
  return cede__exp_scale((int64_t)n, cede__exp_term(x - n * CEDE__EXP_STEP_HI - n * CEDE__EXP_STEP_LO + lo));
}

// cede_exp returns e^x.
static inline double cede_exp(double x) {
  if (!(x > -700 && x < 709)) {
    if (x != x) return x;
    return x > 720 ? __builtin_inf() : x < -750 ? 0 : cede__exp_of(x, 0);
  }
  double shifted = x * CEDE__EXP_PER_STEP + CEDE__ROUND, n = shifted - CEDE__ROUND;
  int64_t k = (int64_t)(cede__bits(shifted) << 13) >> 13;
  return cede__exp_fast(k, cede__exp_term(x - n * CEDE__EXP_STEP_HI - n * CEDE__EXP_STEP_LO));
}

// cede_exp10 returns 10^x.
static inline double cede_exp10(double x) {
  if (x != x) return x;
  if (x > 310) return __builtin_inf();
  if (x < -325) return 0;
  double n = x * CEDE__EXP10_PER_STEP + CEDE__ROUND - CEDE__ROUND;
  double p = cede__exp10_term(x - n * CEDE__EXP10_STEP_HI - n * CEDE__EXP10_STEP_LO);
  return x > -304 && x < 308 ? cede__exp_fast((int64_t)n, p) : cede__exp_scale((int64_t)n, p);
}

// cede__log_parts returns w, r and rest such that the logarithm of the number with
// the given bits is w + rest + ln(1+r), up to the square of rest.
static inline void cede__log_parts(uint64_t bits, double *w, double *r, double *rest) {
  uint64_t i = bits >> 45 & 127, one = (uint64_t)1023 << 52, mantissa = bits & (((uint64_t)1 << 52) - 1);
  int64_t k = ((int64_t)bits >> 52) - 1023;
  if (i >= 53) {
    k++;
    one = (uint64_t)1022 << 52;
  }
  double z = cede__float(mantissa | one), high = cede__float(mantissa >> 27 << 27 | one);
  const double *e = cede__log_table[i]; // inverse, hi, lo
  double a = high * e[0] - 1, b = (z - high) * e[0];
  *r = a + b;
  double t = *r - a, lost = a - (*r - t) + (b - t), n = (double)k;
  *w = n * CEDE__LN2_HI + e[1];
  *rest = n * CEDE__LN2_LO + e[2] + (lost - lost * *r);
}

// cede_log returns the natural logarithm of x.
static inline double cede_log(double x) {
  uint64_t bits = cede__bits(x);
  if (bits - 0x0010000000000000 >= 0x7fe0000000000000) {
    if (x != x || x > 0x1.fffffffffffffp1023) return x;
    if (x < 0) return __builtin_nan("");
    if (x == 0) return -__builtin_inf();
    bits = cede__bits(x * 0x1p54) - ((uint64_t)54 << 52);
  }
  double w, r, rest;
  cede__log_parts(bits, &w, &r, &rest);
  double r2 = r * r;
  double q = r2 * (-1.0 / 2 + r * (1.0 / 3) + r2 * (-1.0 / 4 + r * (1.0 / 5)) +
                   r2 * r2 * (-1.0 / 6 + r * (1.0 / 7) + r2 * (-1.0 / 8 + r * (1.0 / 9))));
  double hi = w + r, lo = w - hi + r;
  return hi + (lo + rest + q);
}

// cede__product_error returns x*y-p exactly, where p is x*y rounded.
static inline double cede__product_error(double x, double y, double p) {
  double x1 = cede__float(cede__bits(x) >> 27 << 27), y1 = cede__float(cede__bits(y) >> 27 << 27);
  double x2 = x - x1, y2 = y - y1;
  return x1 * y1 - p + x1 * y2 + x2 * y1 + x2 * y2;
}

// cede__log_pair returns ln(x) as a sum of two numbers.
static inline double cede__log_pair(double x, double *low) {
  uint64_t bits = cede__bits(x);
  if (bits < (uint64_t)1 << 52) bits = cede__bits(x * 0x1p54) - ((uint64_t)54 << 52);
  double w, r, rest;
  cede__log_parts(bits, &w, &r, &rest);
  double r2 = r * r, square = cede__product_error(r, r, r2), r4 = r2 * r2;
  double cubic = 1.0 / 3 - r * (1.0 / 4) + r2 * (1.0 / 5 - r * (1.0 / 6)) +
                 r4 * (1.0 / 7 - r * (1.0 / 8) + r2 * (1.0 / 9 - r * (1.0 / 10)) + r4 * (1.0 / 11));
  double a = w + r, lost_a = w - a + r, b = a - 0.5 * r2, lost_b = a - b - 0.5 * r2;
  double tail = lost_a + lost_b + rest - 0.5 * square + r * r2 * cubic, hi = b + tail;
  *low = b - hi + tail;
  return hi;
}

// cede__pow_positive returns x^y for finite x above zero and finite y.
CEDE__COLD static double cede__pow_positive(double x, double y) {
  double lo, hi = cede__log_pair(x, &lo), e = y * hi;
  if (e > 720) return __builtin_inf();
  if (e < -750) return 0;
  if (__builtin_fabs(e) < 0x1p-60) return 1;
  return cede__exp_of(e, cede__product_error(y, hi, e) + y * lo);
}

// cede_pow returns x^y.
static inline double cede_pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return __builtin_nan("");
  if (y == 1) return x;
  double ax = __builtin_fabs(x), ay = __builtin_fabs(y), infinite = __builtin_inf();
  bool whole = y == __builtin_trunc(y);
  double sign = cede__bits(x) >> 63 && whole && ay < 0x1p53 && ((int64_t)y & 1) ? -1 : 1;
  if (ay == infinite) return ax == 1 ? 1 : (ax > 1) == (y > 0) ? infinite : 0;
  if (ax == 0 || ax == infinite) return sign * ((ax == 0) == (y < 0) ? infinite : 0);
  if (x < 0 && !whole) return __builtin_nan("");
  return sign * cede__pow_positive(ax, y);
}

// cede_sqrt returns the square root of x, correctly rounded.
static inline double cede_sqrt(double x) { return __builtin_sqrt(x); }

// ---------------------------------------------------------------------------
// Getters of the configuration. Reading a setting that is not declared, or with the
// getter of another kind, is a defect of the policy and traps.
// ---------------------------------------------------------------------------

// cede__all returns the range of the values of a setting, which are adjacent.
CEDE__COLD static uint32_t cede__all(const cede_config *c, const char *name, cede_kind kind, uint32_t *from) {
  cede_text wanted = cede_literal(name);
  uint32_t i = 0, n = 0;
  while (i < c->count && !cede_same(cede_text_of(&c->texts, c->name[i]), wanted)) i++;
  *from = i;
  while (i + n < c->count && cede_same(cede_text_of(&c->texts, c->name[i + n]), wanted)) n++;
  if (n && c->kind[i] != kind) __builtin_trap();
  return n;
}

CEDE__COLD static uint32_t cede__one(const cede_config *c, const char *name, cede_kind kind) {
  uint32_t from;
  if (cede__all(c, name, kind, &from) == 0) __builtin_trap();
  return from;
}

static inline bool cede_bool(const cede_config *c, const char *name) { return c->integer[cede__one(c, name, CEDE_KIND_BOOL)] != 0; }
static inline int64_t cede_integer(const cede_config *c, const char *name) { return c->integer[cede__one(c, name, CEDE_KIND_INTEGER)]; }
static inline double cede_number(const cede_config *c, const char *name) { return c->number[cede__one(c, name, CEDE_KIND_NUMBER)]; }
static inline int64_t cede_duration(const cede_config *c, const char *name) { return c->integer[cede__one(c, name, CEDE_KIND_DURATION)]; }
static inline cede_text cede_text_setting(const cede_config *c, const char *name) {
  return cede_text_of(&c->texts, c->text[cede__one(c, name, CEDE_KIND_TEXT)]);
}

// cede_texts_count and cede_texts_at return the values of a setting of texts, in
// their order in the configuration.
static inline uint32_t cede_texts_count(const cede_config *c, const char *name) {
  uint32_t from;
  return cede__all(c, name, CEDE_KIND_TEXTS, &from);
}
static inline cede_text cede_texts_at(const cede_config *c, const char *name, uint32_t k) {
  uint32_t from;
  if (k >= cede__all(c, name, CEDE_KIND_TEXTS, &from)) __builtin_trap();
  return cede_text_of(&c->texts, c->text[from + k]);
}

// cede_numbers_count and cede_numbers_at return the named numbers of a setting,
// ascending by name.
static inline uint32_t cede_numbers_count(const cede_config *c, const char *name) {
  uint32_t from;
  return cede__all(c, name, CEDE_KIND_NUMBERS, &from);
}
static inline double cede_numbers_at(const cede_config *c, const char *name, uint32_t k, cede_text *item) {
  uint32_t from;
  if (k >= cede__all(c, name, CEDE_KIND_NUMBERS, &from)) __builtin_trap();
  *item = cede_text_of(&c->texts, c->item[from + k]);
  return c->number[from + k];
}

// ---------------------------------------------------------------------------
// Frames. The rest of this file is internal.
// ---------------------------------------------------------------------------

enum { CEDE__OK = 0, CEDE__FAILED = -1, CEDE__BAD = -2, CEDE__UNSUPPORTED = -3, CEDE__MEMORY = -4 };
enum { CEDE__U8 = 1, CEDE__I32, CEDE__I64, CEDE__F64 };
enum { CEDE__HEADER = 80, CEDE__ENTRY_SIZE = 16, CEDE__GROUPS = 7, CEDE__COLUMNS = 24, CEDE__ANSWERS = 22 };
#define CEDE__ANY UINT64_MAX

// cede__entry is a column or an answer of a frame.
typedef struct {
  uint32_t type, count;
  uint8_t *at;    // null: the frame lacks it
  uint8_t *entry; // its description in the frame
} cede__entry;

// cede__request is a frame with its columns and answers by ID. bad is set if anything
// that was read is malformed.
typedef struct {
  uint8_t *frame;
  uint32_t length, op, options, rows, dims, requests;
  int64_t now;
  bool bad;
  cede__entry columns[CEDE__COLUMNS * CEDE__GROUPS], answers[CEDE__ANSWERS];
} cede__request;

__attribute__((weak)) cede__request cede__current;

static inline uint32_t cede__u32(const uint8_t *at) {
  uint32_t x;
  __builtin_memcpy(&x, at, sizeof x);
  return x;
}

static inline int64_t cede__i64(const uint8_t *at) {
  int64_t x;
  __builtin_memcpy(&x, at, sizeof x);
  return x;
}

static inline void cede__put_u32(uint8_t *at, uint32_t x) { __builtin_memcpy(at, &x, sizeof x); }

// cede__slot returns the entry of an ID, or null for an ID of a newer host.
static cede__entry *cede__slot(cede__request *r, uint32_t id) {
  uint32_t group = (id >> 8) - 1, k = (id & 255) - 1;
  if (group < CEDE__GROUPS && k < CEDE__COLUMNS) return &r->columns[CEDE__COLUMNS * group + k];
  if (id - 0x1001 < CEDE__ANSWERS) return &r->answers[id - 0x1001];
  return NULL;
}

// cede__list reads the entries of columns or of answers.
CEDE__COLD static bool cede__list(cede__request *r, uint32_t count, uint32_t from) {
  if (from > r->length || (uint64_t)count * CEDE__ENTRY_SIZE > r->length - from) return false;
  for (uint8_t *e = r->frame + from; count > 0; count--, e += CEDE__ENTRY_SIZE) {
    uint32_t id = cede__u32(e), type = cede__u32(e + 4), at = cede__u32(e + 8), n = cede__u32(e + 12);
    uint32_t shift = type == CEDE__U8 ? 0 : type == CEDE__I32 ? 2 : 3;
    if (type < CEDE__U8 || type > CEDE__F64) n = 0; // a type that a newer host defines
    else if (at % 8 || at > r->length || n > (r->length - at) >> shift) return false;
    cede__entry *slot = cede__slot(r, id);
    if (slot) *slot = (cede__entry){type, n, r->frame + at, e};
  }
  return true;
}

// cede__load reads the header and the entries of a frame.
CEDE__COLD static bool cede__load(cede__request *r, uint8_t *frame, uint32_t length, uint32_t op) {
  if (frame != cede__frame || length > cede__frame_size || length < CEDE__HEADER) return false;
  if (cede__u32(frame) != 0x45444543 || (uint16_t)cede__u32(frame + 4) != 1) return false;
  uint32_t size = cede__u32(frame + 12);
  if (cede__u32(frame + 8) < CEDE__HEADER || size < CEDE__HEADER || size > length) return false;
  __builtin_memset(r, 0, sizeof *r);
  r->frame = frame;
  r->length = size;
  r->op = cede__u32(frame + 16);
  r->now = cede__i64(frame + 24);
  r->options = cede__u32(frame + 32);
  r->rows = cede__u32(frame + 36);
  r->dims = cede__u32(frame + 40);
  r->requests = cede__u32(frame + 44);
  // Every row and every option occupies at least one byte of the frame.
  if (r->op != op || r->options > size || r->rows > size || r->dims > 1024 || r->requests > 1024) return false;
  return cede__list(r, cede__u32(frame + 48), cede__u32(frame + 52)) &&
         cede__list(r, cede__u32(frame + 56), cede__u32(frame + 60));
}

// cede__get returns a column of the given type and number of elements, or null if the
// frame has none.
CEDE__COLD static const void *cede__get(cede__request *r, uint32_t id, uint32_t type, uint64_t count) {
  cede__entry *e = cede__slot(r, id);
  if (!e->entry) return NULL;
  if (e->type != type || (count != CEDE__ANY && e->count != count)) r->bad = true;
  return e->at;
}

CEDE__COLD static const void *cede__must(cede__request *r, uint32_t id, uint32_t type, uint64_t count) {
  const void *at = cede__get(r, id, type, count);
  if (!at && count > 0) r->bad = true;
  return at;
}

CEDE__COLD static cede_table cede__table(cede__request *r, uint32_t id, uint32_t columns, uint32_t length) {
  const double *at = cede__get(r, id, CEDE__F64, (uint64_t)columns * length);
  return (cede_table){at, at ? (int32_t)columns : 0, (int32_t)length};
}

static uint32_t cede__count(cede__request *r, uint32_t id) { return cede__slot(r, id)->count; }

CEDE__COLD static int32_t cede__word(cede__request *r, uint32_t id) {
  const int32_t *at = cede__get(r, id, CEDE__I32, 1);
  return at && !r->bad ? *at : 0;
}

static cede_texts cede__texts(cede__request *r) {
  return (cede_texts){
      cede__get(r, 0x0101, CEDE__I32, CEDE__ANY),
      cede__get(r, 0x0102, CEDE__U8, CEDE__ANY),
      cede__count(r, 0x0101),
      cede__count(r, 0x0102),
  };
}

// cede__ascending checks positions, because policies index by them.
CEDE__COLD static void cede__ascending(cede__request *r, const int32_t *first, uint32_t elements, uint32_t end) {
  if (!first || r->bad) return;
  int32_t at = 0;
  bool bad = first[0] != 0;
  for (uint32_t i = 0; i < elements; i++) {
    bad |= first[i] < at;
    at = first[i];
  }
  if (bad || (uint32_t)at != end) r->bad = true;
}

static cede_text cede__named(cede__request *r, const cede_texts *t, uint32_t id) { return cede_text_of(t, cede__word(r, id)); }

CEDE__COLD static void cede__load_preemptor(cede__request *r, cede_preemptor *p, const cede_texts *t) {
  const int64_t *waiting = cede__get(r, 0x0209, CEDE__I64, 1);
  *p = (cede_preemptor){
      .priority = cede__word(r, 0x0201),
      .delta = cede__word(r, 0x0202),
      .ask = cede__must(r, 0x0203, CEDE__F64, r->dims),
      .ports = cede__word(r, 0x0204),
      .namespace_name = cede__named(r, t, 0x0205),
      .job = cede__named(r, t, 0x0206),
      .group = cede__named(r, t, 0x0207),
      .job_type = cede__named(r, t, 0x0208),
      .waiting = waiting && !r->bad ? *waiting : 0,
      .attempts = cede__word(r, 0x020A),
      .requests = (int32_t)r->requests,
      .device = cede__must(r, 0x020B, CEDE__I32, r->requests),
      .device_count = cede__must(r, 0x020C, CEDE__I32, r->requests),
  };
  uint32_t labels = cede__count(r, 0x020D), notes = cede__count(r, 0x020F);
  p->labels.count = (int32_t)labels;
  p->labels.name = cede__get(r, 0x020D, CEDE__I32, labels);
  p->labels.value_text = cede__must(r, 0x020E, CEDE__I32, labels);
  p->annotations.count = (int32_t)notes;
  p->annotations.name = cede__get(r, 0x020F, CEDE__I32, notes);
  p->annotations.value = cede__must(r, 0x0210, CEDE__F64, notes);
}

CEDE__COLD static void cede__load_rows(cede__request *r, cede_rows *c) {
  uint32_t n = r->rows, labels = cede__count(r, 0x040D), names = cede__count(r, 0x040F), budgets = cede__count(r, 0x0412);
  *c = (cede_rows){
      .count = (int32_t)n,
      .priority = cede__get(r, 0x0401, CEDE__I32, n),
      .use = cede__table(r, 0x0402, r->dims, n),
      .start = cede__get(r, 0x0403, CEDE__I64, n),
      .lost_work = cede__get(r, 0x0404, CEDE__I64, n),
      .namespace_name = cede__get(r, 0x0405, CEDE__I32, n),
      .job = cede__get(r, 0x0406, CEDE__I32, n),
      .group = cede__get(r, 0x0407, CEDE__I32, n),
      .evictions = cede__get(r, 0x0408, CEDE__I32, n),
      .eviction_limit = cede__get(r, 0x0409, CEDE__I32, n),
      .must_leave = cede__get(r, 0x040A, CEDE__U8, n),
      .devices = cede__table(r, 0x040B, r->requests, n),
      .first_label = cede__get(r, 0x040C, CEDE__I32, (uint64_t)n + 1),
      .label_key = cede__get(r, 0x040D, CEDE__I32, labels),
      .label_value = cede__must(r, 0x040E, CEDE__I32, labels),
      .annotation_name = cede__get(r, 0x040F, CEDE__I32, names),
      .annotations = cede__table(r, 0x0410, names, n),
      .relocation = cede__get(r, 0x0413, CEDE__U8, n),
      .displaced_priority = cede__get(r, 0x0414, CEDE__I32, n),
      .displaced_lost_work = cede__get(r, 0x0415, CEDE__I64, n),
      .first_budget = cede__get(r, 0x0411, CEDE__I32, (uint64_t)n + 1),
      .budget = cede__get(r, 0x0412, CEDE__I32, budgets),
  };
  if (!c->annotations.at && (uint64_t)names * n > 0) r->bad = true;
  cede__ascending(r, c->first_label, n + 1, labels);
  cede__ascending(r, c->first_budget, n + 1, budgets);
  for (uint32_t i = 0, known = cede__count(r, 0x0506); i < budgets && !r->bad; i++)
    if ((uint32_t)c->budget[i] >= known) r->bad = true;
}

CEDE__COLD static void cede__load_shared(cede__request *r, cede_shared *s) {
  uint32_t n = cede__count(r, 0x0502), budgets = cede__count(r, 0x0506);
  *s = (cede_shared){
      .capacity = cede__get(r, 0x0501, CEDE__F64, r->dims),
      .namespaces = (int32_t)n,
      .namespace_name = cede__get(r, 0x0502, CEDE__I32, n),
      .weight = cede__must(r, 0x0503, CEDE__F64, n),
      .use = cede__table(r, 0x0504, r->dims, n),
      .budgets = (int32_t)budgets,
      .budget_name = cede__must(r, 0x0505, CEDE__I32, budgets),
      .budget_slack = cede__get(r, 0x0506, CEDE__I32, budgets),
      .budget_strict = cede__must(r, 0x0507, CEDE__U8, budgets),
  };
}

CEDE__COLD static bool cede__load_candidates(cede__request *r, cede_candidates *c) {
  uint32_t n = r->options, d = r->dims;
  c->now = r->now;
  c->options = (int32_t)n;
  c->dims = (int32_t)d;
  c->texts = cede__texts(r);
  cede__load_preemptor(r, &c->preemptor, &c->texts);
  c->dim = cede__must(r, 0x0301, CEDE__I32, d);
  c->first_row = cede__must(r, 0x0302, CEDE__I32, (uint64_t)n + 1);
  c->need = cede__table(r, 0x0303, d, n);
  c->freed = cede__table(r, 0x0304, d, n);
  c->device_need = cede__table(r, 0x0305, r->requests, n);
  c->must_leave = cede__get(r, 0x0306, CEDE__I32, n);
  c->place = cede__get(r, 0x0307, CEDE__I32, n);
  c->capacity = cede__table(r, 0x0308, d, n);
  c->reserved = cede__table(r, 0x0309, d, n);
  c->free = cede__table(r, 0x030A, d, n);
  c->own = cede__table(r, 0x030B, d, n);
  cede__load_rows(r, &c->rows);
  cede__load_shared(r, &c->shared);
  cede__ascending(r, c->first_row, n + 1, r->rows);
  return !r->bad && (c->rows.priority || r->rows == 0) && (c->need.at || (uint64_t)d * n == 0);
}

CEDE__COLD static bool cede__load_options(cede__request *r, cede_options *o) {
  uint32_t n = r->options, d = r->dims;
  o->now = r->now;
  o->options = (int32_t)n;
  o->dims = (int32_t)d;
  o->texts = cede__texts(r);
  cede__load_preemptor(r, &o->preemptor, &o->texts);
  o->dim = cede__must(r, 0x0301, CEDE__I32, d);
  o->node = cede__must(r, 0x0601, CEDE__I32, n);
  o->highest_priority = cede__must(r, 0x0602, CEDE__I32, n);
  o->victim_count = cede__must(r, 0x0603, CEDE__I32, n);
  o->priority_sum = cede__must(r, 0x0604, CEDE__I64, n);
  o->lost_work = cede__get(r, 0x0605, CEDE__I64, n);
  o->start = cede__get(r, 0x060B, CEDE__I64, n);
  o->violations = cede__get(r, 0x060A, CEDE__I32, n);
  o->stranded = cede__get(r, 0x060C, CEDE__I32, n);
  o->displacing = cede__get(r, 0x060D, CEDE__I32, n);
  o->displaced_priority = cede__get(r, 0x060E, CEDE__I32, n);
  o->displaced_lost_work = cede__get(r, 0x060F, CEDE__I64, n);
  o->expected_lost_work = cede__get(r, 0x0610, CEDE__I64, n);
  o->cascade_depth = cede__get(r, 0x0611, CEDE__I32, n);
  o->expected_delay = cede__get(r, 0x0612, CEDE__I64, n);
  o->place = cede__get(r, 0x0307, CEDE__I32, n);
  o->device_need = cede__table(r, 0x0305, r->requests, n);
  const int32_t *group = cede__get(r, 0x030C, CEDE__I32, (uint64_t)r->requests * n);
  o->device_group = (cede_int_table){group, group ? (int32_t)r->requests : 0, (int32_t)n};
  o->fit_before = cede__get(r, 0x0606, CEDE__F64, n);
  o->fit_after = cede__get(r, 0x0607, CEDE__F64, n);
  o->components = cede__table(r, 0x0608, 3, n);
  o->present = cede__get(r, 0x0609, CEDE__U8, n);
  o->need = cede__table(r, 0x0303, d, n);
  o->first_victim = cede__get(r, 0x0302, CEDE__I32, (uint64_t)n + 1);
  cede__load_rows(r, &o->victims);
  cede__load_shared(r, &o->shared);
  cede__ascending(r, o->first_victim, n + 1, r->rows);
  return !r->bad && (o->victims.priority || !o->first_victim || r->rows == 0);
}

// cede__room returns the area of an answer.
static void *cede__room(cede__request *r, uint32_t id, uint32_t type, uint64_t count) {
  return (void *)(uintptr_t)cede__must(r, id, type, count);
}

// cede__finish returns the status of a hook, and writes its error message.
CEDE__COLD static int32_t cede__finish(cede__request *r, const char *error, cede_recheck recheck) {
  if (error == CEDE_OK) {
    int64_t *at = cede__room(r, 0x1016, CEDE__I64, 1);
    if (!at || r->bad) return CEDE__BAD;
    *at = recheck.at;
    return CEDE__OK;
  }
  if (error == CEDE_NO_MEMORY) return CEDE__MEMORY;
  uint32_t at = cede__u32(r->frame + 64), room = cede__u32(r->frame + 68), n = 0;
  if (r->length < 4 || at > r->length - 4 || room > r->length - 4 - at) return CEDE__FAILED;
  for (; n < room && error[n]; n++) r->frame[at + 4 + n] = (uint8_t)error[n];
  cede__put_u32(r->frame + at, n);
  return CEDE__FAILED;
}

static int32_t cede__priority_delta(const cede_policy *p, uint8_t *frame, uint32_t length) {
  cede__request *r = &cede__current;
  static cede_candidates in;
  if (!cede__load(r, frame, length, 3)) return CEDE__BAD;
  if (!p->priority_delta) return CEDE__UNSUPPORTED;
  cede_gaps out = {.gap = cede__room(r, 0x1011, CEDE__I32, r->rows)};
  if (!cede__load_candidates(r, &in)) return CEDE__BAD;
  const char *error = p->priority_delta(&in, &out);
  return cede__finish(r, error, out.recheck);
}

static int32_t cede__score_victims(const cede_policy *p, uint8_t *frame, uint32_t length) {
  cede__request *r = &cede__current;
  static cede_candidates in;
  if (!cede__load(r, frame, length, 4)) return CEDE__BAD;
  if (!p->score_victims) return CEDE__UNSUPPORTED;
  cede_victim_scores out = {
      .tier = cede__room(r, 0x1012, CEDE__I64, r->rows),
      .score = cede__room(r, 0x1013, CEDE__F64, r->rows),
  };
  if (!cede__load_candidates(r, &in)) return CEDE__BAD;
  const char *error = p->score_victims(&in, &out);
  return cede__finish(r, error, out.recheck);
}

// cede__selection returns the area for picks.
static cede_selection cede__selection(cede__request *r) {
  return (cede_selection){
      .picks = cede__room(r, 0x1014, CEDE__I32, CEDE__ANY),
      .ends = cede__room(r, 0x1015, CEDE__I32, r->options),
      .room = cede__slot(r, 0x1014)->count,
      .options = r->options,
  };
}

// cede__picked is cede__finish for hooks that pick.
static int32_t cede__picked(cede__request *r, const char *error, const cede_selection *out) {
  if (error == CEDE_OK && out->closed != out->options) error = "a hook that picks must call cede_next once for every option";
  if (error == CEDE_OK) cede__put_u32(cede__slot(r, 0x1014)->entry + 12, out->used);
  return cede__finish(r, error, out->recheck);
}

static int32_t cede__select_victims(const cede_policy *p, uint8_t *frame, uint32_t length) {
  cede__request *r = &cede__current;
  static cede_candidates in;
  if (!cede__load(r, frame, length, 5)) return CEDE__BAD;
  if (!p->select_victims) return CEDE__UNSUPPORTED;
  cede_selection out = cede__selection(r);
  if (!cede__load_candidates(r, &in)) return CEDE__BAD;
  const char *error = p->select_victims(&in, &out);
  return cede__picked(r, error, &out);
}

// cede__tiers returns the areas for four tiers of each option.
static void cede__tiers(cede__request *r, int64_t *tier[4]) {
  int64_t *at = cede__room(r, 0x1012, CEDE__I64, 4 * (uint64_t)r->options);
  for (uint32_t k = 0; k < 4; k++) tier[k] = at + k * r->options;
}

static int32_t cede__preempt_bindings(const cede_policy *p, uint8_t *frame, uint32_t length) {
  cede__request *r = &cede__current;
  static cede_candidates in;
  if (!cede__load(r, frame, length, 7)) return CEDE__BAD;
  if (!p->preempt_bindings) return CEDE__UNSUPPORTED;
  cede_binding_victims out = {.selection = cede__selection(r)};
  cede__tiers(r, out.tier);
  if (!cede__load_candidates(r, &in)) return CEDE__BAD;
  const char *error = p->preempt_bindings(&in, &out);
  return cede__picked(r, error, &out.selection);
}

static int32_t cede__score_options(const cede_policy *p, uint8_t *frame, uint32_t length) {
  cede__request *r = &cede__current;
  static cede_options in;
  if (!cede__load(r, frame, length, 6)) return CEDE__BAD;
  if (!p->score_options) return CEDE__UNSUPPORTED;
  cede_option_scores out = {.score = cede__room(r, 0x1013, CEDE__F64, r->options)};
  cede__tiers(r, out.tier);
  if (!cede__load_options(r, &in)) return CEDE__BAD;
  const char *error = p->score_options(&in, &out);
  return cede__finish(r, error, out.recheck);
}

static int32_t cede__configure(const cede_policy *p, uint8_t *frame, uint32_t length) {
  cede__request *r = &cede__current;
  if (!cede__load(r, frame, length, 2)) return CEDE__BAD;
  if (!p->configure) return CEDE__UNSUPPORTED;
  uint32_t n = cede__count(r, 0x0701);
  cede_config c = {
      .count = n,
      .name = cede__get(r, 0x0701, CEDE__I32, n),
      .kind = cede__must(r, 0x0702, CEDE__U8, n),
      .item = cede__must(r, 0x0703, CEDE__I32, n),
      .integer = cede__must(r, 0x0704, CEDE__I64, n),
      .number = cede__must(r, 0x0705, CEDE__F64, n),
      .text = cede__must(r, 0x0706, CEDE__I32, n),
      .texts = cede__texts(r),
  };
  if (r->bad) return CEDE__BAD;
  const char *error = p->configure(&c);
  if (error == CEDE_OK) return CEDE__OK;
  return cede__finish(r, error, (cede_recheck){0});
}

// cede__writer writes a text and truncates it to the available space.
typedef struct {
  uint8_t *at;
  uint32_t room, used;
} cede__writer;

CEDE__COLD static void cede__put(cede__writer *w, char c) {
  if (w->used < w->room) w->at[w->used] = (uint8_t)c;
  w->used++;
}

CEDE__COLD static void cede__puts(cede__writer *w, const char *s) {
  while (s && *s) cede__put(w, *s++);
}

// cede__put_json writes `,"key":"text"`, or `,"key":text` if the text is a number.
CEDE__COLD static void cede__put_json(cede__writer *w, const char *key, const char *text, bool quoted) {
  if (!text) return;
  if (key) {
    cede__puts(w, ",\"");
    cede__puts(w, key);
    cede__puts(w, "\":");
  }
  if (quoted) cede__put(w, '"');
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') cede__put(w, '\\');
    if ((uint8_t)*text >= ' ') {
      cede__put(w, *text);
      continue;
    }
    cede__puts(w, "\\u00");
    cede__put(w, "01"[*text >> 4]);
    cede__put(w, "0123456789abcdef"[*text & 15]);
  }
  if (quoted) cede__put(w, '"');
}

static void cede__put_list(cede__writer *w, const char *begin, const char *const *texts) {
  for (const char *const *t = texts; t && *t; t++) {
    cede__puts(w, t == texts ? begin : ",");
    cede__put_json(w, NULL, *t, true);
    if (!t[1]) cede__put(w, ']');
  }
}

static void cede__put_setting(cede__writer *w, const cede_setting *s) {
  static const char *const kinds[] = {"bool", "integer", "number", "duration", "text", "texts", "numbers"};
  cede__puts(w, "{\"name\":");
  cede__put_json(w, NULL, s->name, true);
  cede__put_json(w, "kind", kinds[s->kind - 1], true);
  cede__put_json(w, "doc", s->doc ? s->doc : "", true);
  cede__put_json(w, "default", s->fallback ? s->fallback : "", true);
  if (s->required) cede__puts(w, ",\"required\":true");
  cede__put_json(w, "min", s->min, false);
  cede__put_json(w, "max", s->max, false);
  cede__put_list(w, ",\"oneOf\":[", s->one_of);
  cede__put_json(w, "range", s->range, false);
  cede__put_list(w, ",\"choices\":[", s->choices);
  cede__put(w, '}');
}

static cede__writer cede__begin(cede__request *r, uint32_t id) {
  return (cede__writer){cede__room(r, id, CEDE__U8, CEDE__ANY), cede__count(r, id), 0};
}

static void cede__end(cede__request *r, uint32_t id, cede__writer *w) { cede__put_u32(cede__slot(r, id)->entry + 12, w->used); }

static void cede__put_settings(cede__writer *w, const cede_policy *p) {
  cede__put(w, '[');
  for (uint32_t i = 0; i < p->setting_count; i++) {
    if (i) cede__put(w, ',');
    cede__put_setting(w, &p->settings[i]);
  }
  cede__put(w, ']');
}

static int32_t cede__hooks(const cede_policy *p) {
  return (p->priority_delta ? 1 : 0) | (p->score_victims ? 2 : 0) | (p->select_victims ? 4 : 0) | (p->score_options ? 8 : 0) |
         (p->preempt_bindings ? 16 : 0);
}

static int32_t cede__describe(const cede_policy *p, uint8_t *frame, uint32_t length) {
  cede__request *r = &cede__current;
  if (!cede__load(r, frame, length, 1)) return CEDE__BAD;
  int32_t *hooks = cede__room(r, 0x1003, CEDE__I32, 1), *flags = cede__room(r, 0x1004, CEDE__I32, 1);
  int32_t *delta = cede__room(r, 0x1005, CEDE__I32, 1);
  int64_t *columns = cede__room(r, 0x1006, CEDE__I64, 1);
  cede__writer name = cede__begin(r, 0x1001), version = cede__begin(r, 0x1002), settings = cede__begin(r, 0x1007);
  if (r->bad) return CEDE__BAD;
  *hooks = cede__hooks(p);
  *flags = p->flags | (p->configure ? 8 : 0);
  *delta = p->delta;
  *columns = p->columns;
  cede__puts(&name, p->name);
  cede__puts(&version, p->version);
  if (p->configure) cede__put_settings(&settings, p);
  cede__end(r, 0x1001, &name);
  cede__end(r, 0x1002, &version);
  cede__end(r, 0x1007, &settings);
  return CEDE__OK;
}

#endif // CEDE_H
