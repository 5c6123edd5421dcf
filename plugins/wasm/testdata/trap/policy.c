// Traps in a function that another one calls; the modules beside contain its lines.
#include "../../../../sdk/c/cede.h"
#include "pick.h"

static const char *score_victims(const cede_candidates *in, cede_victim_scores *out) {
  for (int32_t row = 0; row < in->rows.count; row++)
    out->score[row] = pick(row, in->rows.count - in->rows.count); // the caller
  return CEDE_OK;
}

CEDE_POLICY(.name = "trap", .version = "1", .delta = 10, .score_victims = score_victims)
