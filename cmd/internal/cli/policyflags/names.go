package policyflags

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/rules"
)

// DisplayNames returns the names of policies in results, by argument. The folder of a
// policy is displayed by the name in its manifest, unless that is ambiguous or the name of
// a built-in policy.
func DisplayNames(written []string) map[string]string {
	shown, count := map[string]string{}, map[string]int{}
	for _, w := range written {
		if _, duplicate := shown[w]; duplicate {
			continue
		}
		shown[w] = manifestName(w)
		count[shown[w]]++
	}
	for w, name := range shown {
		if name != w && (count[name] > 1 || slices.Contains(written, name)) {
			shown[w] = w
		}
	}
	numberRules(written, shown)
	return shown
}

// numberRules names several rules of a command line by their number: rules-1, rules-2.
func numberRules(written []string, shown map[string]string) {
	n := 0
	for i, w := range written {
		if shown[w] == w && strings.HasPrefix(w, rules.Prefix) && !slices.Contains(written[:i], w) {
			n++
			shown[w] = fmt.Sprintf("%s-%d", policies.RulesName, n)
		}
	}
}

// manifestName returns P?key=value with the name of the policy in directory P, if P
// is a policy's directory.
func manifestName(p string) string {
	if strings.HasPrefix(p, rules.Prefix) {
		return policies.RulesName
	}
	base := BaseName(p)
	if slices.Contains(builtin.Names(), base) {
		return p
	}
	m, _, err := bundle.ReadManifest(base)
	if err != nil || slices.Contains(builtin.Names(), m.Name) {
		return p
	}
	return m.Name + strings.TrimPrefix(p, base)
}
