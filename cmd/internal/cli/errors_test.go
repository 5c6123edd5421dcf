package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/cede-scheduler/cede/cmd/internal/app"
	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// TestErrors_MatchGolden lists the errors that users can cause, with exit code, text
// and hint, so that the language of messages can be read in one file. It runs bad
// command lines, files, configurations and requests through the real command tree and
// a server in this process. -rewrite updates the file.
//
// Directives: "file NAME" stores a file; "cede" runs one command line a line; "config"
// checks a configuration; "api" sends one request a line, as METHOD PATH BODY.
func TestErrors_MatchGolden(t *testing.T) {
	if soak.Race && !soak.Full() {
		t.Skip("TestServerTranscripts runs the same commands and server under the race detector: set CEDE_SOAK=1")
	}
	url := startDevServer(t)
	files := map[string]string{}
	golden, err := filepath.Abs("testdata/errors.golden")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir()) // for commands that read their files without Env
	datadriven.RunTest(t, golden, func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		switch d.Cmd {
		case "file":
			name := d.CmdArgs[0].Key
			files[name] = d.Input + "\n"
			if err := os.WriteFile(name, []byte(files[name]), 0o600); err != nil {
				t.Fatal(err)
			}
		case "cede":
			for line := range strings.Lines(d.Input) {
				out.WriteString(failingCommand(t, files, strings.TrimSpace(line), url))
			}
		case "config":
			out.WriteString(invalidConfig(t, d.Input+"\n"))
		case "api":
			for line := range strings.Lines(d.Input) {
				out.WriteString(refusedRequest(t, url, strings.TrimSpace(line)))
			}
		default:
			t.Fatalf("unknown directive %s", d.Cmd)
		}
		return out.String()
	})
}

// startDevServer starts a server as cede agent --dev does, without a node, and returns
// its URL.
func startDevServer(t *testing.T) string {
	t.Helper()
	loaded, err := config.Load(config.Sources{Dev: true, Flags: map[string]string{
		"listen.http": "127.0.0.1:0", "listen.metrics": "", "client.enabled": "false",
	}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := app.Start(t.Context(), app.Options{Config: loaded, Stderr: io.Discard, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p.URL()
}

// failingCommand runs a command line that must fail and returns its stderr. Words are
// separated by spaces; 'a b' is one word.
func failingCommand(t *testing.T, files map[string]string, line, url string) string {
	t.Helper()
	args := splitWords(line)
	w := clitest.New(files, args...)
	w.Clock = clock.Real{}
	if !strings.Contains(line, "--addr") {
		w.Variables["CEDE_ADDR"] = url
	}
	code := runEnv(t, w)
	if code == cmdutil.ExitOK {
		t.Errorf("%q succeeds:\n%s", line, w.Out.String())
	}
	return fmt.Sprintf("$ cede %s\nexit %d\n%s", line, code, scrub(w.Err.String(), url))
}

// splitWords splits a command line at spaces outside single quotes.
func splitWords(line string) (list []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			list = append(list, part)
			continue
		}
		list = append(list, strings.Fields(part)...)
	}
	return list
}

// invalidConfig checks a configuration file that must be invalid.
func invalidConfig(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "cede.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w := clitest.New(nil, "config", "validate", file)
	if code := runEnv(t, w); code != cmdutil.ExitUsage {
		t.Errorf("exit %d for\n%s", code, text)
	}
	return scrub(strings.ReplaceAll(w.Err.String(), dir+"/", ""), "")
}

// refusedRequest sends a request that the server must refuse.
func refusedRequest(t *testing.T, url, line string) string {
	t.Helper()
	method, rest, _ := strings.Cut(line, " ")
	path, body, _ := strings.Cut(rest, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode < 400 {
		t.Errorf("%q succeeded with status %d: %s", line, resp.StatusCode, text)
	}
	var e struct {
		Code, Message, Hint string
		Details             json.RawMessage
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return fmt.Sprintf("%s\n%d %s\n", line, resp.StatusCode, bytes.TrimSpace(text))
	}
	out := fmt.Sprintf("%s\n%d %s\nerror: %s\n", line, resp.StatusCode, e.Code, e.Message)
	if e.Hint != "" {
		out += "hint: " + e.Hint + "\n"
	}
	return scrub(out, url)
}

var (
	randomID  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[A-Z2-7]{26}\b`)
	anyNumber = regexp.MustCompile(`\bindex [0-9]+`)
)

// scrub replaces the parts that differ between runs.
func scrub(text, url string) string {
	if url != "" {
		text = strings.ReplaceAll(text, url, "http://SERVER")
		text = strings.ReplaceAll(text, strings.TrimPrefix(url, "http://"), "SERVER")
	}
	text = randomID.ReplaceAllString(text, "ID")
	return anyNumber.ReplaceAllString(text, "index N")
}
