package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/clock"
)

// fakeServer answers as a transcript specifies.
type fakeServer struct {
	mu      sync.Mutex
	answers map[string]fakeAnswer // by method and path, with the query if it matters
	asked   []string              // bodies of write requests
}

type fakeAnswer struct {
	status int
	body   string
	kind   string

	silence time.Duration // time since the last contact with a leader; more than 0: no leader is known
}

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	path := r.Method + " " + r.URL.EscapedPath()
	answer, ok := f.answers[path+"?"+r.URL.RawQuery]
	if !ok {
		answer, ok = f.answers[path]
	}
	if r.Method != http.MethodGet {
		f.asked = append(f.asked, strings.TrimSpace(path+" "+string(body)))
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Nomad-Index", "40")
	w.Header().Set("X-Nomad-KnownLeader", "true")
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, `{"Code":"not_found","Message":"nothing at %s"}`, path)
		return
	}
	if answer.kind != "" {
		w.Header().Set("Content-Type", answer.kind)
	}
	if answer.silence > 0 {
		w.Header().Set("X-Nomad-KnownLeader", "false")
		w.Header().Set("X-Nomad-LastContact", strconv.FormatInt(answer.silence.Milliseconds(), 10))
	}
	w.WriteHeader(answer.status)
	_, _ = io.WriteString(w, answer.body)
}

// TestServerTranscripts plays the files of testdata/server against a server that
// answers as the transcript specifies:
//
//	answer METHOD PATH [status=N] [type=TEXT] [silence=TIME]   the server's answer from now on
//	file NAME                                  a file for the commands that follow
//	cede                                       a command line, and its standard input below it
//	asked                                      the write requests since the last one
//
// If -rewrite is set, the files are updated with the actual output.
func TestServerTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/server", func(t *testing.T, path string) {
		fake := &fakeServer{answers: map[string]fakeAnswer{}}
		server := httptest.NewServer(fake)
		defer server.Close()
		files := map[string]string{}
		variables := map[string]string{"CEDE_ADDR": server.URL}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "answer":
				fake.answer(t, d, server.URL)
			case "file":
				files[d.CmdArgs[0].Key] = d.Input + "\n"
			case "cede":
				return runStory(t, d, files, variables, server.URL)
			case "asked":
				fake.mu.Lock()
				defer fake.mu.Unlock()
				text := strings.Join(fake.asked, "\n") + "\n"
				fake.asked = nil
				return text
			default:
				t.Fatalf("unknown command %s", d.Cmd)
			}
			return ""
		})
	})
}

func (f *fakeServer) answer(t *testing.T, d *datadriven.TestData, url string) {
	answer := fakeAnswer{status: http.StatusOK, body: strings.ReplaceAll(d.Input, "http://SERVER", url)}
	for _, arg := range d.CmdArgs[2:] {
		switch arg.Key {
		case "status":
			n, err := strconv.Atoi(arg.Vals[0])
			if err != nil {
				t.Fatal(err)
			}
			answer.status = n
		case "silence":
			d, err := time.ParseDuration(arg.Vals[0])
			if err != nil {
				t.Fatal(err)
			}
			answer.silence = d
		case "type":
			if answer.kind = arg.Vals[0]; answer.kind == "text/event-stream" {
				answer.body += "\n\n" // terminates the last event
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[d.CmdArgs[0].Key+" "+d.CmdArgs[1].String()] = answer
}

func runStory(t *testing.T, d *datadriven.TestData, files, variables map[string]string, url string) string {
	line, input, _ := strings.Cut(d.Input, "\n")
	w := clitest.New(files, strings.Fields(line)...)
	w.Variables = variables
	w.Stdin = strings.NewReader(input)
	w.Clock = clock.NewVirtual(time.Unix(100_000, 0))
	code := runEnv(t, w)
	text := w.Out.String()
	if w.Err.Len() > 0 {
		text += "-- stderr\n" + w.Err.String()
	}
	if code != cmdutil.ExitOK {
		text += fmt.Sprintf("-- exit %d\n", code)
	}
	return strings.ReplaceAll(text, url, "http://SERVER")
}

// If a command that waits for a server is interrupted, it exits with 130.
func TestServerCommands_AreInterrupted(t *testing.T) {
	for _, args := range []string{"job status", "event stream", "eval explain e1", "node list", "operator raft", "alloc logs a"} {
		t.Run(args, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				cancel()
				<-r.Context().Done()
			}))
			defer server.Close()
			w := clitest.New(nil, strings.Fields(args)...)
			w.Variables["CEDE_ADDR"] = server.URL
			if code := cmdutil.Run(ctx, w.Env, newRootCmd); code != cmdutil.ExitInterrupted {
				t.Errorf("exit %d: %s", code, w.Err.String())
			}
		})
	}
}
