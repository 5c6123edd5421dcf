package repotest

import (
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSoak_RunsEveryTestWithFullCounts checks the commands of `make soak`: one runs every
// package that selects counts, and one runs the packages of `make test` under the race
// detector. Both ignore cached results, and have a timeout for full counts.
func TestSoak_RunsEveryTestWithFullCounts(t *testing.T) {
	t.Parallel()
	soak, test := goTests(t, "soak"), goTests(t, "test")
	if len(soak) != 2 || len(test) != 2 {
		t.Fatalf("make soak runs go test %d times and make test %d times, want 2 each:\n%q\n%q", len(soak), len(test), soak, test)
	}
	for i, command := range soak {
		for _, flag := range []string{"CEDE_SOAK=1", "-count 1", "-timeout 12h"} {
			if !strings.Contains(command, flag+" ") {
				t.Errorf("make soak lacks %s: %s", flag, command)
			}
		}
		if raced := strings.Contains(command, " -race "); raced != (i == 1) {
			t.Errorf("race detector of command %d: %v: %s", i+1, raced, command)
		}
	}
	if got := patterns(soak[0]); !slices.Equal(got, []string{"./..."}) {
		t.Errorf("make soak runs the packages %v without the race detector, want all", got)
	}
	if got, want := patterns(soak[1]), patterns(test[1]); !slices.Equal(got, want) || len(got) == 0 {
		t.Errorf("make soak runs the packages %v under the race detector, make test runs %v", got, want)
	}
	requireBuilt(t)
}

// requireBuilt checks that no build constraint excludes a file that selects counts from
// the commands of `make soak`.
func requireBuilt(t *testing.T) {
	t.Helper()
	built := map[string]bool{}
	for _, p := range modulePackages(t) {
		for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			built[path.Join(p.rel, name)] = true
		}
	}
	found := 0
	for _, file := range files(t, "_test.go") {
		if !strings.Contains(read(t, file), `"`+module+`/sdk/policytest/soak"`) {
			continue
		}
		found++
		if !built[file] {
			t.Errorf("%s selects counts, and make soak does not build it", file)
		}
	}
	if found < 50 {
		t.Errorf("found %d files that select counts: the search has lost them", found)
	}
}

var goTest = regexp.MustCompile(`(?m)^.*\bgo test .*$`)

// goTests returns the commands of a target that run tests.
func goTests(t *testing.T, target string) []string {
	t.Helper()
	cmd := exec.Command("make", "--no-print-directory", "-n", target)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "GO=go") // without those of a make that runs this test
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("make -n %s: %v", target, err)
	}
	return goTest.FindAllString(string(out), -1)
}

// patterns returns the package patterns of a go test command.
func patterns(command string) (list []string) {
	for word := range strings.FieldsSeq(command) {
		if strings.HasPrefix(word, "./") {
			list = append(list, strings.TrimSuffix(word, ";"))
		}
	}
	return list
}
