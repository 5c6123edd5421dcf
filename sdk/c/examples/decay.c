// decay: lost work counts less the longer ago it started.
//
// Victims are ordered by the work that their eviction loses, which counts for half after
// each halfLife since its start. Allocations that started less than grace ago are protected
// from all but much higher priorities. Options are ordered by the highest priority among
// their victims, and then by fit less the work that is lost there.
#include "../cede.h"

static const cede_setting settings[] = {
    {"halfLife", CEDE_KIND_DURATION, "age at which lost work counts for half", "1h", CEDE_BETWEEN(1, 31536000), CEDE_RANGE(60, 86400)},
    {"grace", CEDE_KIND_DURATION, "age below which an eviction requires graceGap", "0s", CEDE_AT_LEAST(0),
     .choices = (const char *const[]){"0s", "1m", "10m", NULL}},
    {"graceGap", CEDE_KIND_INTEGER, "priority gap required within the grace", "50", CEDE_BETWEEN(0, 100)},
    {"weight", CEDE_KIND_NUMBER, "weight of lost hours against the fit of an option", "0.1", CEDE_AT_LEAST(0), CEDE_RANGE(0.001, 10)},
    {"fewest", CEDE_KIND_BOOL, "prefer options with fewer victims before weighing them", "true"},
    {"fit", CEDE_KIND_TEXT, "whether fit counts before or after the evictions", "after",
     .one_of = (const char *const[]){"before", "after", NULL}, .choices = (const char *const[]){"before", "after", NULL}},
    {"spare", CEDE_KIND_TEXTS, "namespaces from which nothing is evicted"},
    {"factors", CEDE_KIND_NUMBERS, "factor of lost hours by namespace, 1 if absent", NULL, CEDE_AT_LEAST(0)},
};

// The configuration.
static int64_t half_life, grace;
static int32_t grace_gap;
static double weight;
static bool fewest, fit_before;
static struct factor {
  cede_text name;
  double value; // CEDE_NEVER for a protected namespace
} *factors;
static uint32_t factor_count;

static const struct factor *find_factor(cede_text name) {
  for (uint32_t k = 0; k < factor_count; k++)
    if (cede_same(factors[k].name, name)) return &factors[k];
  return NULL;
}

// factor_of returns the weight of a lost hour in a namespace.
static double factor_of(cede_text name) {
  const struct factor *f = find_factor(name);
  return f ? f->value : 1;
}

static const char *configure_factors(const cede_config *c) {
  static cede_buffer memory;
  uint32_t numbers = cede_numbers_count(c, "factors"), spared = cede_texts_count(c, "spare");
  factors = cede_room(&memory, (numbers + spared) * sizeof *factors);
  if (!factors) return CEDE_NO_MEMORY;
  for (uint32_t k = 0; k < numbers; k++) {
    struct factor *f = &factors[factor_count++];
    f->value = cede_numbers_at(c, "factors", k, &f->name);
    f->name = cede_keep(f->name);
  }
  for (uint32_t k = 0; k < spared; k++) {
    cede_text name = cede_texts_at(c, "spare", k);
    if (find_factor(name)) return cede_fail("a namespace cannot both be spared and have a factor, or have two factors; remove one", name);
    factors[factor_count++] = (struct factor){cede_keep(name), CEDE_NEVER};
  }
  return CEDE_OK;
}

static const char *configure(const cede_config *c) {
  half_life = cede_duration(c, "halfLife");
  grace = cede_duration(c, "grace");
  grace_gap = (int32_t)cede_integer(c, "graceGap");
  weight = cede_number(c, "weight");
  fewest = cede_bool(c, "fewest");
  fit_before = cede_same(cede_text_setting(c, "fit"), cede_literal("before"));
  return configure_factors(c);
}

// Within its grace, an allocation requires a larger gap. If that alone protects it,
// the host evaluates again after the grace.
static const char *priority_delta(const cede_candidates *in, cede_gaps *out) {
  const cede_rows *rows = &in->rows;
  for (int32_t row = 0; row < rows->count; row++) {
    int64_t until = rows->start[row] + grace;
    if (in->now >= until || out->gap[row] >= grace_gap) continue;
    int64_t gap = (int64_t)in->preemptor.priority - rows->priority[row];
    if (gap >= out->gap[row] && gap < grace_gap) cede_recheck_at(&out->recheck, until);
    out->gap[row] = grace_gap;
  }
  return CEDE_OK;
}

// A group that has reached its limit of evictions is evicted last.
static const char *score_victims(const cede_candidates *in, cede_victim_scores *out) {
  const cede_rows *rows = &in->rows;
  const double ln2 = 0x1.62e42fefa39efp-1;
  double factor = 1;
  for (int32_t row = 0; row < rows->count; row++) {
    if (row == 0 || rows->namespace_name[row] != rows->namespace_name[row - 1])
      factor = factor_of(cede_text_of(&in->texts, rows->namespace_name[row]));
    out->tier[row] = rows->eviction_limit[row] > 0 && rows->evictions[row] >= rows->eviction_limit[row];
    if (factor == CEDE_NEVER) {
      out->score[row] = CEDE_NEVER;
      continue;
    }
    int64_t age = in->now - rows->start[row];
    double seconds = (double)rows->lost_work[row] / 1e9 * factor;
    double half_lives = (double)(age > 0 ? age : 0) / (double)half_life;
    out->score[row] = seconds * cede_exp(-(half_lives * ln2));
  }
  return CEDE_OK;
}

// mean returns the mean of the parts of the ranking of option i.
static double mean(const cede_options *in, int32_t i) {
  double sum = (fit_before ? in->fit_before : in->fit_after)[i], n = 1;
  for (int32_t k = 0; k < in->components.columns; k++)
    if (in->present[i] >> k & 1) {
      sum += cede_column(in->components, k)[i];
      n++;
    }
  return sum / n;
}

static const char *score_options(const cede_options *in, cede_option_scores *out) {
  for (int32_t i = 0; i < in->options; i++) {
    int32_t victims = in->victim_count[i];
    out->tier[0][i] = victims ? in->highest_priority[i] : INT64_MIN;
    out->tier[1][i] = fewest ? victims : 0;
    double hours = (double)in->lost_work[i] / 3600e9;
    out->score[i] = mean(in, i) - weight * cede_log(1 + hours);
  }
  return CEDE_OK;
}

CEDE_POLICY(
    .name = "decay", .version = "1", .delta = 10,
    .columns = CEDE_START | CEDE_LOST_WORK | CEDE_JOB | CEDE_EVICTION | CEDE_FIT | CEDE_TIME,
    CEDE_SETTINGS(settings), .configure = configure,
    .priority_delta = priority_delta, .score_victims = score_victims, .score_options = score_options)
