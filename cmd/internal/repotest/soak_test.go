package repotest

import (
	"go/ast"
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
	soak, test := goTests(t, 2, "soak"), goTests(t, 3, "test", "COUNTS=normal")
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
	got, want := patterns(soak[1]), slices.Concat(patterns(test[1]), patterns(test[2]))
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || len(got) == 0 {
		t.Errorf("make soak runs the packages %v under the race detector, make test runs %v", got, want)
	}
	requireBuilt(t)
}

// TestMake_RunsEveryTest checks that with reduced counts `make test` leaves out a package only
// if it runs under the race detector, and that it runs the tests of these packages that are
// skipped there. Of other packages, it runs selected tests under the race detector. CI uses
// normal counts, with which every package runs without it too, and the same tests under it.
func TestMake_RunsEveryTest(t *testing.T) {
	t.Parallel()
	test, normal := goTests(t, 4, "test"), goTests(t, 3, "test", "COUNTS=normal")
	for i, command := range test {
		if !strings.Contains(command, "CEDE_QUICK=1 ") || strings.Contains(command, " -race ") != (i >= 2) {
			t.Errorf("command %d of make test must use reduced counts, and the race detector if it is one of the last two: %s", i+1, command)
		}
	}
	partial, raced, selected := patterns(test[1]), patterns(test[2]), patterns(test[3])
	if !slices.Equal(patterns(normal[0]), []string{"./..."}) || strings.Contains(normal[0], "CEDE_QUICK=") {
		t.Errorf("make test COUNTS=normal must run all packages with normal counts: %s", normal[0])
	}
	for i, command := range normal[1:] {
		if reduced := strings.Replace(test[i+2], " -p 4 ", " -p 3 ", 1); command != reduced {
			t.Errorf("make test COUNTS=normal must use the race detector as make test does:\n%s\n%s", command, reduced)
		}
	}
	if ci := read(t, ".ci/run"); !strings.Contains(ci, "\nmake test COUNTS=normal\n") {
		t.Error(".ci/run must run make test COUNTS=normal")
	}
	run := regexp.MustCompile(`-run '(.*?)'`)
	only, shared := regexp.MustCompile(run.FindStringSubmatch(test[1])[1]), strings.Split(strings.Trim(run.FindStringSubmatch(test[3])[1], "^()$"), "|")
	var exist []string
	for _, p := range selected {
		skipped, others := racedTests(t, p)
		names := slices.Concat(skipped, others)
		if !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(shared, name) }) {
			t.Errorf("%s: RACE_SHARED of the Makefile contains none of its tests", p)
		}
		exist = append(exist, names...)
	}
	for _, name := range shared {
		if !slices.Contains(exist, name) {
			t.Errorf("RACE_SHARED of the Makefile contains %q, which is not a test of RACE_SELECTED", name)
		}
	}
	var omitted []string
	for _, m := range regexp.MustCompile(`-e `+regexp.QuoteMeta(module)+`(/[^ )]+)`).FindAllStringSubmatch(test[0], -1) {
		omitted = append(omitted, "."+m[1])
	}
	if len(omitted) == 0 {
		t.Errorf("no package is left out of %s", test[0])
	}
	for _, p := range omitted {
		if !slices.Contains(raced, p) {
			t.Errorf("make test does not run %s", p)
		}
		skipped, others := racedTests(t, p)
		if isPartial := slices.Contains(partial, p); isPartial != (len(skipped) > 0) {
			t.Errorf("%s: RACE_PARTIAL of the Makefile must contain packages whose tests read soak.Race, and no others; those of this one are %v", p, skipped)
		}
		for _, name := range skipped {
			if !only.MatchString(name) {
				t.Errorf("%s of %s reads soak.Race: add it to RACE_SKIPPED in the Makefile", name, p)
			}
		}
		for _, name := range others {
			if only.MatchString(name) && slices.Contains(partial, p) {
				t.Errorf("%s of %s does not read soak.Race: remove it from RACE_SKIPPED in the Makefile", name, p)
			}
		}
	}
}

// racedTests returns the tests of a package that read soak.Race, themselves or in functions
// of the package that they call, and the other tests.
func racedTests(t *testing.T, pattern string) (reading, others []string) {
	t.Helper()
	uses := map[string]map[string]bool{} // names that a function contains, by its name
	for _, file := range files(t, "_test.go") {
		if path.Dir(file) != strings.TrimPrefix(pattern, "./") {
			continue
		}
		for _, d := range parse(t, file, 0).Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if uses[f.Name.Name] == nil {
				uses[f.Name.Name] = map[string]bool{}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					uses[f.Name.Name][id.Name] = true
				}
				return true
			})
		}
	}
	reads := map[string]bool{"Race": true}
	for grown := true; grown; {
		grown = false
		for name, used := range uses {
			for n := range used {
				if reads[n] && !reads[name] {
					reads[name], grown = true, true
				}
			}
		}
	}
	for name := range uses {
		switch {
		case !strings.HasPrefix(name, "Test") || name == "TestMain":
		case reads[name]:
			reading = append(reading, name)
		default:
			others = append(others, name)
		}
	}
	return reading, others
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

// goTests returns the n commands of a target that run tests if there is a C compiler.
func goTests(t *testing.T, n int, target ...string) []string {
	t.Helper()
	cmd := exec.Command("make", append([]string{"--no-print-directory", "-n", "HAS_RACE=yes"}, target...)...)
	cmd.Dir = root
	// A make that runs this test exports its flags and the variables of its command line.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "COUNTS=") })
	cmd.Env = append(cmd.Env, "MAKEFLAGS=", "GO=go")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("make -n %s: %v", target, err)
	}
	commands := goTest.FindAllString(string(out), -1)
	if len(commands) != n {
		t.Fatalf("make %s runs go test %d times, want %d: %q", target, len(commands), n, commands)
	}
	return commands
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
