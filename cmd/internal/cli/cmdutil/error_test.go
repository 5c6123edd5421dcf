package cmdutil

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/jobspec"
	"github.com/cede-scheduler/cede/sdk/client"
)

func TestWantsJSON_AllSpellings(t *testing.T) {
	for _, tc := range []struct {
		args     string
		variable string
		want     bool
	}{
		{"sim run -o json x", "", true},
		{"sim run --output json x", "", true},
		{"sim run --output=json x", "", true},
		{"sim run -ojson x", "", true},
		{"sim run -o=json x", "", true},
		{"sim run x", "json", true},
		{"sim run x -o yaml", "json", false},
		{"sim run x -- -o json", "", false},
		{"sim run -o", "", false},
		{"sim run x", "", false},
	} {
		if got := WantsJSON(strings.Fields(tc.args), func(string) string { return tc.variable }); got != tc.want {
			t.Errorf("%q with %q: %v", tc.args, tc.variable, got)
		}
	}
}

func TestMoreSevere_OrderOfExitCodes(t *testing.T) {
	order := []Exit{ExitInterrupted, ExitUsage, ExitPolicy, ExitError, ExitCheck, ExitOK}
	for i, a := range order {
		for _, b := range order[i:] {
			if MoreSevere(a, b) != a || MoreSevere(b, a) != a {
				t.Errorf("MoreSevere(%d, %d) is %d, and swapped %d", a, b, MoreSevere(a, b), MoreSevere(b, a))
			}
		}
	}
}

// The server's parameter stale=true is --stale on the command line.
func TestServerError_NamesFlags(t *testing.T) {
	e := ServerError(&client.Error{Code: client.CodeNoLeader, Message: "no", Hint: "ask another server; stale=true reads the local state"})
	if want := "ask another server; --stale reads the local state"; e.Hint != want || e.Exit != ExitUnreachable {
		t.Errorf("exit %d, %q", e.Exit, e.Hint)
	}
}

// The server's hint names a header, for which most commands have no flag.
func TestServerError_UnknownOutcomeNamesNoHeader(t *testing.T) {
	e := ServerError(&client.Error{Code: client.CodeUnknownOutcome, Message: "unknown", Hint: "send it again with the same Idempotency-Key"})
	if want := "check whether it took effect before the command is repeated"; e.Hint != want || e.Exit != ExitError {
		t.Errorf("exit %d, hint %q, want %q", e.Exit, e.Hint, want)
	}
}

// A file of another kind is passed by mistake: the hint names the command that reads it.
func TestInvalidJob_NamesCommandForOtherKindsOfFile(t *testing.T) {
	for text, want := range map[string]string{
		"version: 1\nname: x\nnodes: []\nevents: []\n": "cede sim run dir/x.yaml",
		"apiVersion: v1\nkind: Pod\n":                  "cede compare --what-if dir/x.yaml",
		"priorityClasses: []\n":                        "cede priority-class apply dir/x.yaml",
		"name: x\nrules:\n  order: victim.age\n":       "cede policy build dir",
		"names: x\n":                                   "`cede help jobs` describes job files",
	} {
		_, err := jobspec.Parse("dir/x.yaml", []byte(text))
		problems, ok := errors.AsType[jobspec.Problems](err)
		if !ok {
			t.Fatalf("%q: %v", text, err)
		}
		if hint := invalidJob(problems).Hint; !strings.Contains(hint, want) {
			t.Errorf("%q: hint %q lacks %q", text, hint, want)
		}
	}
}

// A problem may take several lines, and errors with equal messages may list other problems.
func TestJoinProblems_CountsProblemsInsteadOfLines(t *testing.T) {
	list := func(problems ...string) error {
		e := &Error{Message: "the rules: 1 problem", Details: problems}
		for _, p := range problems {
			e.Lines = append(e.Lines, strings.Split(p, "\n")...)
		}
		return e
	}
	err := JoinProblems("the command line", list("first\n  a\n  ^"), list("second\n  b\n  ^"), list("first\n  a\n  ^"), Usagef("use it", "third"))
	err = JoinProblems("the command line", err, errors.New("fourth"))
	e := AsError(err)
	if want := "the command line has 4 problems"; e.Message != want {
		t.Errorf("%q, want %q", e.Message, want)
	}
	if want := []string{"first", "  a", "  ^", "second", "  b", "  ^", "third; use it", "fourth"}; !slices.Equal(e.Lines, want) {
		t.Errorf("lines %q, want %q", e.Lines, want)
	}
	if details := e.Details.([]string); len(details) != 4 || details[1] != "second\n  b\n  ^" {
		t.Errorf("details %q", details)
	}
}
