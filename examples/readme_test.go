package examples_test

import (
	"bufio"
	"bytes"
	"flag"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the commands print into the pages")

// shown is a command in a page and what it prints, or a block of commands whose
// output is not shown. An output that ends with … is cut short: as many
// paragraphs are shown as there are blank lines above it.
//
// A block of sh that begins with cede agent goes on until the page ends; what the
// page says after it is said to that agent.
var shown = regexp.MustCompile("(?s)```console\n\\$ ([^\n]+)\n(.*?)```\n|```sh\n(.*?)```\n")

func TestReadmes_ShowWhatTheCommandsPrint(t *testing.T) {
	home := workshop(t)
	pages, err := filepath.Glob("*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, "../README.md")
	for _, page := range pages {
		t.Run(filepath.Dir(page), func(t *testing.T) {
			before, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range saved.FindAllStringSubmatch(string(before), -1) {
				if err := os.WriteFile(filepath.Join(home, s[2]+".yaml"), []byte(s[1]), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			blocks := 0
			after := shown.ReplaceAllStringFunc(string(before), func(block string) string {
				blocks++
				parts := shown.FindStringSubmatch(block)
				switch {
				case strings.HasPrefix(parts[3], "bin/cede agent "):
					startAgent(t, home, parts[3])
					return block
				case parts[1] == "":
					run(t, home, "set -e\n"+parts[3])
					return block
				}
				return "```console\n$ " + parts[1] + "\n" + abridge(run(t, home, parts[1]), parts[2]) + "```\n"
			})
			if blocks == 0 {
				t.Error("the page shows no command")
			}
			switch {
			case after == string(before) || t.Failed():
			case *update:
				if err := os.WriteFile(page, []byte(after), 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("the commands print something else now; if that is meant, go test ./examples -update\n%s", firstDifference(string(before), after))
			}
		})
	}
}

// saved is a scenario in a page, which the reader saves under its name.
var saved = regexp.MustCompile("(?s)```yaml\n(version: 1\nname: ([a-z-]+)\n.*?)```\n")

// workshop is a folder with the binary and the examples where the pages have
// them, and nothing else: what a command writes stays there.
func workshop(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(home, "bin", "cede"), "../cmd/cede")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(here, filepath.Join(home, "examples")); err != nil {
		t.Fatal(err)
	}
	// The tool that caches test results sees which files a test looks at, not
	// those that a build looks at. What is in core it knows from the imports.
	for _, dir := range []string{"../cmd", "../plugins", "../sdk"} {
		if err := filepath.WalkDir(dir, func(string, fs.DirEntry, error) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// startAgent runs an agent until the page ends, at an address of its own.
func startAgent(t *testing.T, home, line string) {
	t.Helper()
	for _, listener := range []string{"http", "rpc", "metrics"} {
		line = strings.TrimSpace(line) + " --set listen." + listener + "=127.0.0.1:0"
	}
	cmd := exec.Command("sh", "-c", "exec "+line)
	cmd.Dir = home
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, errs.String())
		}
	})
	said := bufio.NewScanner(out)
	for said.Scan() {
		if address, ok := strings.CutPrefix(said.Text(), "cede is ready at "); ok {
			t.Setenv("CEDE_ADDR", address)
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return
		}
	}
	t.Fatalf("%s: it is not ready\n%s", line, errs.String())
}

func run(t *testing.T, home, line string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "LC_ALL=C", "NO_COLOR=1")
	if os.Getenv("CEDE_SOAK") != "" { // as on the machine of somebody who never built anything
		cmd.Env = append(cmd.Env, "GOCACHE="+filepath.Join(home, "cache"), "GOMODCACHE="+filepath.Join(home, "modules"), "GOPROXY=off")
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v\n%s%s", line, err, out, errs.String())
	}
	t.Logf("%v of processor time: %s", cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), line)
	return string(out)
}

func abridge(output, old string) string {
	above, cut := strings.CutSuffix(old, "…\n")
	if !cut {
		return output
	}
	blank := 0
	for line := range strings.Lines(above) {
		if line == "\n" {
			blank++
		}
	}
	paragraphs := strings.SplitAfter(output, "\n\n")
	return strings.Join(paragraphs[:min(len(paragraphs), blank)], "") + "…\n"
}

func firstDifference(want, got string) string {
	w, g := strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return "want " + w[i] + "got  " + g[i]
		}
	}
	return "one is longer than the other"
}
