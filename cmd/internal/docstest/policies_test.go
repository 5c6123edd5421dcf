package docstest

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// measuredPage compares the policies on one workload.
const measuredPage = root + "/docs/concepts/policies-measured.md"

// measuredTables returns the medians of the tables that compare policies with default, by
// policy and metric.
func measuredTables(page string) map[string]map[string]float64 {
	medians := map[string]map[string]float64{}
	var columns []string
	for line := range strings.Lines(page) {
		switch words := strings.Fields(line); {
		case len(words) > 4 && words[0] == "METRIC":
			columns = words[1:]
			for _, policy := range columns {
				medians[strings.ToLower(policy)] = map[string]float64{}
			}
		case strings.HasPrefix(line, "```"):
			columns = nil
		case columns != nil && len(words) > 1:
			at := 0
			for i, word := range words { // the median precedes its interval
				if v, err := strconv.ParseFloat(word, 64); err == nil && i+1 < len(words) && strings.HasPrefix(words[i+1], "[") {
					medians[strings.ToLower(columns[at])][words[0]] = v
					at++
				}
			}
		}
		if strings.HasPrefix(line, "## ") {
			break // other workloads
		}
	}
	return medians
}

// measuredPhrase describes the medians of a policy beside those of default.
func measuredPhrase(policy, reference map[string]float64) string {
	change := func(metric, less, more string) string {
		percent := math.Round(100 * (policy[metric]/reference[metric] - 1))
		return fmt.Sprintf("%.0f %% %s", math.Abs(percent), map[bool]string{true: less, false: more}[percent < 0])
	}
	if policy["victims"] == reference["victims"] && policy["wastedHours.cpu"] == reference["wastedHours.cpu"] {
		return "equals `default`"
	}
	return "evicts " + change("victims", "fewer", "more") + " than `default` and wastes " + change("wastedHours.cpu", "less", "more") + " work"
}

// The page of each policy states where it wins and where it loses. Its figures, and those of
// the list below the tables, are those of the tables.
func TestPolicies_StateTheirMeasuredEffect(t *testing.T) {
	page, err := os.ReadFile(measuredPage)
	if err != nil {
		t.Fatal(err)
	}
	medians := measuredTables(string(page))
	folders, err := filepath.Glob(root + "/policies/*/README.md")
	if err != nil || len(folders) < 9 {
		t.Fatalf("%d policies: %v", len(folders), err)
	}
	for _, file := range folders {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		policy := filepath.Base(filepath.Dir(file))
		sources := map[string]string{file: strings.Join(strings.Fields(string(text)), " "), measuredPage: bullet(string(page), policy)}
		for name, text := range sources {
			if !strings.Contains(text, "wins") || !strings.Contains(text, "loses") {
				t.Errorf("%s does not state where %s wins and where it loses", name, policy)
			}
			if of := medians[policy]; of != nil && policy != "default" && !strings.Contains(text, measuredPhrase(of, medians["default"])) {
				t.Errorf("%s does not state that %s %s", name, policy, measuredPhrase(of, medians["default"]))
			}
		}
	}
	if len(medians["default"]) < 5 || len(medians["nomad"]) < 5 {
		t.Errorf("the tables of %s were not found: %v", measuredPage, medians)
	}
}

// bullet returns the item of a policy in the list of the page.
func bullet(page, policy string) string {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "- [`"+policy+"`]") {
			return line
		}
	}
	return ""
}
