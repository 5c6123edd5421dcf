package docstest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/sim/dataset"
)

// datasetsPage documents the tables of --output-dir. The comments of the row types are
// the descriptions.
func datasetsPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# Tables of simulated runs\n\n`cede sim run` and `cede compare` write these tables into the folder of `--output-dir`, each as `NAME.csv` and `NAME.parquet`\n" +
		"with equal content. [Analyse results](../guides/analyse-results.md) shows how to read them.\n\n" +
		"- The first four columns identify the run. Rows are in the order of runs: by scenario, policy and seed as on the command line.\n" +
		"- The suffix `_s` stands for seconds. Times count from the start of the scenario.\n" +
		"- A null is an empty cell in CSV.\n" +
		"- The same command writes the same bytes, on any number of processors.\n\n")
	for _, table := range dataset.Tables() {
		text := structTables(t, "core/sim/dataset", reflect.TypeOf(table.Row()).Name(), "parquet", func(string) string { return "" })
		fmt.Fprintf(&b, "## %s\n%s", table.Name(), strings.Replace(text, "### Top level\n", "", 1))
	}
	return b.String()
}
