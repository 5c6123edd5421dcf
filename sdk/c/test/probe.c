// probe: folds its whole input into one number and derives its answers from
// it, as sdk/policytest/probe does, so that golden frames show
// whether this library reads all of them. It also exports the arithmetic.
#include "../cede.h"

static uint64_t seed; // what the configuration folds to

typedef struct {
  uint64_t sum;
  const cede_texts *texts;
} fold;

static const uint64_t basis = 0xcbf29ce484222325, prime = 0x100000001b3;

static void add(fold *h, uint64_t x) { h->sum = (h->sum ^ x) * prime; }

// part is a number that follows from the sum, for a row or an option.
static uint64_t part(const fold *h, int64_t k) {
  fold p = *h;
  add(&p, (uint64_t)k);
  return p.sum ^ p.sum >> 29;
}

static void integer(fold *h, int64_t x) { add(h, (uint64_t)x); }
static void number(fold *h, double x) { add(h, cede__bits(x)); }

static void text(fold *h, cede_text t) {
  add(h, t.length);
  for (uint32_t i = 0; i < t.length; i++) add(h, (uint8_t)t.at[i]);
}

// Columns that the frame lacks are empty.
static void ints(fold *h, const int32_t *c, int32_t n) {
  if (!c) n = 0;
  integer(h, n);
  for (int32_t i = 0; i < n; i++) integer(h, c[i]);
}

static void longs(fold *h, const int64_t *c, int32_t n) {
  if (!c) n = 0;
  integer(h, n);
  for (int32_t i = 0; i < n; i++) integer(h, c[i]);
}

static void numbers(fold *h, const double *c, int32_t n) {
  if (!c) n = 0;
  integer(h, n);
  for (int32_t i = 0; i < n; i++) number(h, c[i]);
}

static void bytes(fold *h, const uint8_t *c, int32_t n) {
  if (!c) n = 0;
  integer(h, n);
  for (int32_t i = 0; i < n; i++) add(h, c[i]);
}

static void table(fold *h, cede_table t) {
  integer(h, t.columns);
  for (int32_t k = 0; k < t.columns; k++) numbers(h, cede_column(t, k), t.length);
}

static void texts(fold *h, const int32_t *c, int32_t n) {
  if (!c) n = 0;
  integer(h, n);
  for (int32_t i = 0; i < n; i++) text(h, cede_text_of(h->texts, c[i]));
}

static void preemptor(fold *h, const cede_preemptor *p, int32_t dims) {
  text(h, p->namespace_name);
  text(h, p->job);
  text(h, p->group);
  text(h, p->job_type);
  integer(h, p->priority);
  integer(h, p->delta);
  integer(h, p->ports);
  integer(h, p->attempts);
  integer(h, p->waiting);
  numbers(h, p->ask, dims);
  integer(h, p->requests);
  for (int32_t r = 0; r < p->requests; r++) {
    text(h, cede_text_of(h->texts, p->device[r]));
    integer(h, p->device_count[r]);
  }
  integer(h, p->labels.count);
  for (int32_t i = 0; i < p->labels.count; i++) {
    text(h, cede_text_of(h->texts, p->labels.name[i]));
    text(h, cede_text_of(h->texts, p->labels.value_text[i]));
  }
  integer(h, p->annotations.count);
  for (int32_t i = 0; i < p->annotations.count; i++) {
    text(h, cede_text_of(h->texts, p->annotations.name[i]));
    number(h, p->annotations.value[i]);
  }
}

static void rows(fold *h, const cede_rows *r) {
  int32_t n = r->count, labels = r->first_label ? r->first_label[n] : 0;
  ints(h, r->priority, n);
  table(h, r->use);
  longs(h, r->start, n);
  longs(h, r->lost_work, n);
  texts(h, r->namespace_name, n);
  texts(h, r->job, n);
  texts(h, r->group, n);
  ints(h, r->evictions, n);
  ints(h, r->eviction_limit, n);
  bytes(h, r->must_leave, n);
  table(h, r->devices);
  ints(h, r->first_label, n + 1);
  texts(h, r->label_key, labels);
  texts(h, r->label_value, labels);
  texts(h, r->annotation_name, r->annotations.columns);
  table(h, r->annotations);
  int32_t budgets = r->first_budget ? r->first_budget[n] : 0;
  if (r->first_budget) ints(h, r->first_budget, n + 1);
  if (budgets > 0) ints(h, r->budget, budgets);
  if (!r->relocation || n == 0) return;
  bytes(h, r->relocation, n);
  ints(h, r->displaced_priority, n);
  longs(h, r->displaced_lost_work, n);
}

static void shared(fold *h, const cede_shared *s, int32_t dims) {
  numbers(h, s->capacity, dims);
  texts(h, s->namespace_name, s->namespaces);
  numbers(h, s->weight, s->namespaces);
  table(h, s->use);
  if (s->budgets == 0) return; // no trace: frames of the first version have none
  texts(h, s->budget_name, s->budgets);
  ints(h, s->budget_slack, s->budgets);
  bytes(h, s->budget_strict, s->budgets);
}

static fold candidates(const cede_candidates *in) {
  fold h = {basis ^ seed, &in->texts};
  integer(&h, in->now);
  preemptor(&h, &in->preemptor, in->dims);
  texts(&h, in->dim, in->dims);
  ints(&h, in->first_row, in->options + 1);
  table(&h, in->need);
  table(&h, in->freed);
  table(&h, in->device_need);
  ints(&h, in->must_leave, in->options);
  texts(&h, in->place, in->options);
  table(&h, in->capacity);
  table(&h, in->reserved);
  table(&h, in->free);
  table(&h, in->own);
  rows(&h, &in->rows);
  shared(&h, &in->shared, in->dims);
  return h;
}

static fold options(const cede_options *in) {
  fold h = {basis ^ seed, &in->texts};
  int32_t n = in->options;
  integer(&h, in->now);
  preemptor(&h, &in->preemptor, in->dims);
  texts(&h, in->dim, in->dims);
  ints(&h, in->node, n);
  ints(&h, in->highest_priority, n);
  ints(&h, in->victim_count, n);
  longs(&h, in->priority_sum, n);
  longs(&h, in->lost_work, n);
  texts(&h, in->place, n);
  if (in->start && n > 0) longs(&h, in->start, n);
  if (in->violations && n > 0) ints(&h, in->violations, n);
  if (in->stranded && n > 0) {
    ints(&h, in->stranded, n);
    ints(&h, in->displacing, n);
    ints(&h, in->displaced_priority, n);
    longs(&h, in->displaced_lost_work, n);
  }
  if (in->expected_lost_work && n > 0) {
    longs(&h, in->expected_lost_work, n);
    ints(&h, in->cascade_depth, n);
    longs(&h, in->expected_delay, n);
  }
  table(&h, in->need);
  table(&h, in->device_need);
  integer(&h, in->device_group.columns);
  for (int32_t r = 0; r < in->device_group.columns; r++) ints(&h, cede_int_column(in->device_group, r), n);
  numbers(&h, in->fit_before, n);
  numbers(&h, in->fit_after, n);
  if (n > 0) table(&h, in->components);
  else integer(&h, 0);
  bytes(&h, in->present, n);
  ints(&h, in->first_victim, n + 1);
  rows(&h, &in->victims);
  shared(&h, &in->shared, in->dims);
  return h;
}

// check fails if the preemptor's job requests it.
static const char *check(const cede_preemptor *p) {
  return cede_same(p->job, cede_literal("fail")) ? cede_fail("no", p->namespace_name) : CEDE_OK;
}

static const char *priority_delta(const cede_candidates *in, cede_gaps *out) {
  fold h = candidates(in);
  for (int32_t row = 0; row < in->rows.count; row++) out->gap[row] += (int32_t)(part(&h, row) >> 58);
  cede_recheck_at(&out->recheck, (int64_t)(h.sum >> 2));
  cede_recheck_at(&out->recheck, (int64_t)(h.sum >> 2) + 1);
  return check(&in->preemptor);
}

static const char *score_victims(const cede_candidates *in, cede_victim_scores *out) {
  fold h = candidates(in);
  for (int32_t row = 0; row < in->rows.count; row++) {
    out->tier[row] = (int64_t)part(&h, row);
    out->score[row] = (double)(part(&h, row) >> 11);
  }
  return check(&in->preemptor);
}

static fold pick(const cede_candidates *in, cede_selection *out) {
  fold h = candidates(in);
  bool twice = cede_same(in->preemptor.job, cede_literal("twice"));
  for (int32_t i = 0; i < in->options; i++) {
    for (int32_t row = in->first_row[i + 1] - 1; row >= in->first_row[i]; row--) {
      if (twice) cede_pick(out, row);
      if (twice || part(&h, row) >> 63) cede_pick(out, row);
    }
    cede_next(out);
  }
  cede_recheck_at(&out->recheck, (int64_t)(h.sum >> 1));
  return h;
}

static const char *select_victims(const cede_candidates *in, cede_selection *out) {
  pick(in, out);
  return check(&in->preemptor);
}

static void rank(const fold *h, int64_t *tier[4], int32_t options) {
  for (int32_t i = 0; i < options; i++)
    for (int32_t k = 0; k < 4; k++) tier[k][i] = (int64_t)part(h, 4 * i + k);
}

static const char *preempt_bindings(const cede_candidates *in, cede_binding_victims *out) {
  fold h = pick(in, &out->selection);
  rank(&h, out->tier, in->options);
  return check(&in->preemptor);
}

static const char *score_options(const cede_options *in, cede_option_scores *out) {
  fold h = options(in);
  rank(&h, out->tier, in->options);
  for (int32_t i = 0; i < in->options; i++) out->score[i] = -(double)(part(&h, i) >> 11);
  return check(&in->preemptor);
}

static const cede_setting settings[] = {
    {"on", CEDE_KIND_BOOL, "says \"yes\" or \\no", "true"},
    {"count", CEDE_KIND_INTEGER, "größe,\n\tin 日本 🦀", "3", CEDE_BETWEEN(-1, 9)},
    {"weight", CEDE_KIND_NUMBER, NULL, "0.5", CEDE_AT_LEAST(0.5)},
    {"span", CEDE_KIND_DURATION, NULL, "10m"},
    {"order", CEDE_KIND_TEXT, .required = true, .one_of = (const char *const[]){"newest", "größte", "reject", NULL}},
    {"spare", CEDE_KIND_TEXTS},
    {"shares", CEDE_KIND_NUMBERS},
};

static const char *configure(const cede_config *c) {
  fold h = {basis, &c->texts};
  if (cede_bool(c, "on")) add(&h, 1);
  integer(&h, cede_integer(c, "count"));
  number(&h, cede_number(c, "weight"));
  integer(&h, cede_duration(c, "span"));
  text(&h, cede_text_setting(c, "order"));
  uint32_t spared = cede_texts_count(c, "spare"), shares = cede_numbers_count(c, "shares");
  add(&h, spared);
  for (uint32_t k = 0; k < spared; k++) text(&h, cede_texts_at(c, "spare", k));
  add(&h, shares);
  for (uint32_t k = 0; k < shares; k++) {
    cede_text item;
    double share = cede_numbers_at(c, "shares", k, &item);
    text(&h, item);
    number(&h, share);
  }
  if (cede_same(cede_text_setting(c, "order"), cede_literal("reject")))
    return cede_fail("rejected", cede_texts_at(c, "spare", 0));
  seed = h.sum;
  return CEDE_OK;
}

CEDE_POLICY(
    .name = "probe", .version = "1.0-größe", .delta = -7, .columns = 0x7ffff,
    .flags = CEDE_ADAPTIVE | CEDE_ASCENDING | CEDE_KEEP_REDUNDANT | CEDE_ELASTIC | CEDE_MULTI_CLUSTER |
             CEDE_LEAST_FIRST | CEDE_YOUNGEST_FIRST | CEDE_MONOTONE,
    CEDE_SETTINGS(settings), .configure = configure,
    .priority_delta = priority_delta, .score_victims = score_victims,
    .select_victims = select_victims, .score_options = score_options, .preempt_bindings = preempt_bindings)

CEDE__EXPORT(test_exp) double test_exp(double x) { return cede_exp(x); }
CEDE__EXPORT(test_exp10) double test_exp10(double x) { return cede_exp10(x); }
CEDE__EXPORT(test_log) double test_log(double x) { return cede_log(x); }
CEDE__EXPORT(test_pow) double test_pow(double x, double y) { return cede_pow(x, y); }
CEDE__EXPORT(test_sqrt) double test_sqrt(double x) { return cede_sqrt(x); }
