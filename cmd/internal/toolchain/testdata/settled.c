// The rules of settled in C: those of thrifty for candidates that have run for more than ten
// minutes.
#include "cede.h"

static const char *priority_delta(const cede_candidates *in, cede_gaps *out) {
  for (int32_t row = 0; row < in->rows.count; row++) {
    int64_t age = in->now - in->rows.start[row];
    bool eligible = (int64_t)in->preemptor.priority - in->rows.priority[row] >= 10 && age > 600000000000;
    out->gap[row] = eligible ? 0 : INT32_MAX;
    if (!eligible && in->rows.priority[row] < in->preemptor.priority && age <= 600000000000)
      cede_recheck_at(&out->recheck, in->now + 600000000000 - age + 1);
  }
  return CEDE_OK;
}

static const char *score_victims(const cede_candidates *in, cede_victim_scores *out) {
  for (int32_t row = 0; row < in->rows.count; row++) {
    out->tier[row] = in->rows.priority[row];
    out->score[row] = (double)in->rows.lost_work[row];
  }
  return CEDE_OK;
}

static const char *score_options(const cede_options *in, cede_option_scores *out) {
  for (int32_t i = 0; i < in->options; i++) {
    out->tier[0][i] = in->highest_priority[i];
    out->tier[1][i] = in->lost_work[i];
  }
  return CEDE_OK;
}

CEDE_POLICY(.name = "settled", .version = "1", .delta = 10, .flags = CEDE_ASCENDING | CEDE_MONOTONE,
            .columns = CEDE_START | CEDE_LOST_WORK | CEDE_TIME, .priority_delta = priority_delta,
            .score_victims = score_victims, .score_options = score_options)
