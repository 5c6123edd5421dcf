// The rules of gentle in C: candidates that have run for more than ten minutes, by priority
// and then by the lost time of the whole cluster.
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
  static cede_buffer buffer;
  int32_t n = in->rows.count;
  double *share = cede_room(&buffer, 8 * (uint32_t)n + 8), resources = 0;
  if (!share) return CEDE_NO_MEMORY;
  for (int32_t row = 0; row < n; row++) share[row] = 0;
  for (int32_t d = 0; d < in->dims; d++) {
    double total = in->shared.capacity[d];
    if (!(total > 0)) continue;
    resources++;
    const double *use = cede_column(in->rows.use, d);
    for (int32_t row = 0; row < n; row++) share[row] += use[row] / total;
  }
  if (resources == 0) resources = 1;
  for (int32_t row = 0; row < n; row++) {
    out->tier[row] = in->rows.priority[row];
    out->score[row] = (double)(int64_t)((double)in->rows.lost_work[row] * (share[row] / resources));
  }
  return CEDE_OK;
}

CEDE_POLICY(.name = "gentle", .version = "1", .delta = 10, .flags = CEDE_ASCENDING,
            .columns = CEDE_START | CEDE_LOST_WORK | CEDE_USE | CEDE_TOTALS | CEDE_TIME,
            .priority_delta = priority_delta, .score_victims = score_victims)
