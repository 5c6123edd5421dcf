package link

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/plugins/rules/schema"
)

// enumerations matches the enumerations of runtime.c.
var enumerations = regexp.MustCompile(`(?s)\nenum \{(.*?)\};`)

// The runtime numbers fields as the schema does.
func TestRuntime_NumbersFieldsAsSchema(t *testing.T) {
	text, err := os.ReadFile("runtime/runtime.c")
	if err != nil {
		t.Fatal(err)
	}
	found := enumerations.FindAllStringSubmatch(string(text), -1)
	if len(found) != 2 {
		t.Fatalf("%d enumerations", len(found))
	}
	var fields, maps []string
	for _, f := range schema.Fields {
		fields = append(fields, constant(f.Name))
	}
	for _, m := range schema.Maps {
		maps = append(maps, constant(m.Name))
	}
	if got := strings.Fields(strings.ReplaceAll(found[0][1], ",", " ")); strings.Join(got, " ") != strings.Join(fields, " ")+" FIELDS" {
		t.Errorf("fields %v, want %v", got, fields)
	}
	if got := strings.Fields(strings.ReplaceAll(found[1][1], ",", " ")); strings.Join(got, " ") != strings.Join(maps, " ") {
		t.Errorf("maps %v, want %v", got, maps)
	}
	if len(fields) > 48 {
		t.Error("rule_inputs has room for 48 fields")
	}
}

// constant returns the constant of a name: VICTIM_LOST_WORK of victim.lostWork.
func constant(name string) string {
	upper := regexp.MustCompile(`[A-Z]`).ReplaceAllString(strings.ReplaceAll(name, ".", "_"), "_$0")
	return strings.ToUpper(upper)
}

// The committed runtime was compiled from its source. Other versions of the compiler may
// produce other bytes; those are compiled, but not compared.
func TestRuntime_RebuildsIdentically(t *testing.T) {
	out := filepath.Join(t.TempDir(), "runtime.wasm")
	build := exec.Command("runtime/build.sh", out)
	text, err := build.CombinedOutput()
	if build.ProcessState != nil && build.ProcessState.ExitCode() == 3 {
		t.Skip(strings.TrimSpace(string(text)))
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	built, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	version, err := exec.Command("clang", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if recorded, err := os.ReadFile("runtime/version"); err != nil || string(recorded) != firstLine(version) {
		t.Skipf("not compared: the committed runtime was compiled by %s", recorded)
	}
	if !bytes.Equal(built, runtime) {
		t.Error("runtime.wasm is not the result of its source; run go generate in plugins/rules/link and commit it")
	}
}

func firstLine(text []byte) string {
	line, _, _ := strings.Cut(string(text), "\n")
	return line + "\n"
}
