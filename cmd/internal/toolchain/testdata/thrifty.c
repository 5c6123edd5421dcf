// The rules of thrifty in C: victims by priority and then by lost work, and the option of the
// least priority, then of the least lost work.
#include "cede.h"

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

CEDE_POLICY(.name = "thrifty", .version = "1", .delta = 10, .flags = CEDE_ASCENDING | CEDE_MONOTONE,
            .columns = CEDE_LOST_WORK, .score_victims = score_victims, .score_options = score_options)
