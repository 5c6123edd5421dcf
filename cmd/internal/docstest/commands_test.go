package docstest

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cedetest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

var update = flag.Bool("update", false, "rewrite the outputs in the pages, and the generated pages")

// root is the top folder of the repository, as seen from this package.
const root = "../../.."

// block matches one fenced block. Groups: language, content.
var block = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```\n")

// pages lists the pages with commands to execute. The generated reference
// contains no commands to execute.
func pages(t *testing.T) []string {
	t.Helper()
	list := []string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, "SECURITY.md")}
	for _, top := range []string{"docs", "examples", "policies"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".md") {
				list = append(list, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// longPages are pages of measurements, whose commands play for half a minute of processor
// time each. They are executed with full counts only.
var longPages = map[string]bool{"docs/concepts/policies-measured.md": true, "docs/guides/tune-policies.md": true}

// notebook has the same command as another page.
const notebook = "examples/notebook/README.md"

func TestPages_ShowTheOutputOfTheirCommands(t *testing.T) {
	bin := cedetest.Folder(t)
	list := pages(t)
	var ran, executed atomic.Int64
	t.Cleanup(func() { // after all pages
		if int(ran.Load()) == len(list) && executed.Load() < 50 { // unless -run selects some
			t.Errorf("executed %d blocks: the pages lost their commands, or the pattern does not find them", executed.Load())
		}
	})
	for _, path := range list {
		name, _ := filepath.Rel(root, path)
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			t.Parallel()
			ran.Add(1)
			if longPages[filepath.ToSlash(name)] && !soak.Full() {
				t.Skip("takes long: make soak executes it")
			}
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.ToSlash(name) == notebook && soak.Quick() {
				t.Skip("TestPython_NotebookReadsTables of cmd/cede runs the notebook, and docs/guides/analyse-results.md its command")
			}
			if strings.Contains(string(before), "\nopenssl x509 ") {
				if _, err := exec.LookPath("openssl"); err != nil {
					t.Skip("install openssl to run the commands of this page")
				}
			}
			p := newPage(t, bin)
			begin := time.Now()
			after := block.ReplaceAllStringFunc(string(before), func(whole string) string {
				parts := block.FindStringSubmatch(whole)
				language, content := parts[1], parts[2]
				if p.save(content) {
					return whole
				}
				switch {
				case language != "sh" && language != "console":
					return whole
				case strings.Contains(content, "$CEDE_TRACES") && p.traces == "":
					t.Log("skipped without traces: ", content)
					return whole
				}
				executed.Add(1)
				if language == "sh" {
					if strings.HasPrefix(content, "bin/cede agent ") {
						p.startAgent(content)
					} else {
						p.run("set -e\n" + reduced(content) + "export -p | grep '^declare -x CEDE_' > .exported || true\n")
					}
					return whole
				}
				command, output, _ := strings.Cut(content, "\n")
				command, found := strings.CutPrefix(command, "$ ")
				if !found {
					t.Errorf("a console block must start with \"$ \": %q", command)
					return whole
				}
				return "```console\n$ " + command + "\n" + abridge(p.run(command), output) + "```\n"
			})
			t.Logf("the commands took %v", time.Since(begin).Round(100*time.Millisecond))
			switch {
			case after == string(before) || t.Failed():
			case *update:
				if err := os.WriteFile(path, []byte(after), 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("the output of a command changed; if that is intended, run go test ./cmd/internal/docstest -update\n%s", firstDifference(string(before), after))
			}
		})
	}
}

var (
	draws      = regexp.MustCompile(`--draws \d+`)
	policyTest = regexp.MustCompile(`(?m)^bin/cede policy test [^\n|]*$`)
	traceNodes = regexp.MustCompile(`sim import openb (\S+) --nodes \d+`)
)

// reduced returns commands that show no output, with two draws of each workload unless full
// counts are selected. With reduced counts, policies are tested on fewer cases, as in the
// scripts of cmd/cede, and a trace is cut, which tests of core/sim/importer read in full.
func reduced(commands string) string {
	if soak.Full() {
		return commands
	}
	if soak.Quick() {
		commands = policyTest.ReplaceAllString(commands, "$0 --runs 50")
		commands = traceNodes.ReplaceAllString(commands, "$0 --limit 500")
	}
	return draws.ReplaceAllString(commands, "--draws 2")
}

func TestMain(m *testing.M) { cedetest.Main(m) }

// A page runs the commands of one document in a folder of its own.
type page struct {
	t      *testing.T
	home   string
	traces string // folder of public traces; "" if there is none
	env    []string
	ports  map[string]string // port in the page -> free port
}

func newPage(t *testing.T, bin string) *page {
	t.Helper()
	p := &page{t: t, home: t.TempDir(), ports: map[string]string{}}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := filepath.Abs("testdata/tools")
	if err != nil {
		t.Fatal(err)
	}
	links := map[string]string{"bin": bin, "examples": filepath.Join(top, "examples"), "policies": filepath.Join(top, "policies")}
	for link, target := range links {
		if err := os.Symlink(target, filepath.Join(p.home, link)); err != nil {
			t.Fatal(err)
		}
	}
	p.traces = os.Getenv("CEDE_TRACES")
	if p.traces == "" {
		p.traces = filepath.Join(root, "..", "shared", "traces")
	}
	if p.traces, err = filepath.Abs(p.traces); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(p.traces); err != nil || !info.IsDir() {
		p.traces = ""
	}
	p.env = append(os.Environ(), "LC_ALL=C", "NO_COLOR=1", "CEDE_TRACES="+p.traces, "DOCSTEST_HOME="+p.home,
		"PATH="+tools+string(os.PathListSeparator)+os.Getenv("PATH"))
	if soak.Full() { // as on a machine with empty caches and no network
		p.env = append(p.env, "GOCACHE="+filepath.Join(p.home, "cache"), "GOMODCACHE="+filepath.Join(p.home, "modules"), "GOPROXY=off")
	}
	t.Cleanup(p.stop)
	return p
}

var (
	fileComment  = regexp.MustCompile(`^(?:#|//) ([\w./-]+\.(?:yaml|hcl|go|json|txt))\n`)
	scenarioName = regexp.MustCompile(`^version: 1\nname: ([a-z-]+)\n`)
)

// save writes a block that names its file, and reports whether it did.
func (p *page) save(content string) bool {
	name := ""
	if m := fileComment.FindStringSubmatch(content); m != nil {
		name = m[1]
	} else if m := scenarioName.FindStringSubmatch(content); m != nil {
		name = m[1] + ".yaml"
	}
	if name == "" {
		return false
	}
	file := filepath.Join(p.home, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(p.withFreePorts(content)), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return true
}

var pagePort = regexp.MustCompile(`127\.0\.0\.1:146\d\d\b`)

// withFreePorts replaces the ports of a page by ports that are free here. They have
// as many digits, so that the columns of tables keep their widths.
func (p *page) withFreePorts(text string) string {
	return pagePort.ReplaceAllStringFunc(text, func(address string) string {
		host, port, _ := strings.Cut(address, ":")
		if p.ports[port] == "" {
			p.ports[port] = freePort(p.t)
		}
		return host + ":" + p.ports[port]
	})
}

func (p *page) withPagePorts(text string) string {
	for port, free := range p.ports {
		text = strings.ReplaceAll(text, "127.0.0.1:"+free, "127.0.0.1:"+port)
	}
	return text
}

var (
	nextPort      = 20000 + os.Getpid()%9000
	nextPortMutex sync.Mutex
)

func freePort(t *testing.T) string {
	nextPortMutex.Lock()
	defer nextPortMutex.Unlock()
	for range 1000 {
		nextPort++
		tcp, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(nextPort))
		if err != nil {
			continue
		}
		udp, err := net.ListenPacket("udp", "127.0.0.1:"+strconv.Itoa(nextPort))
		tcp.Close()
		if err != nil {
			continue
		}
		udp.Close()
		return strconv.Itoa(nextPort)
	}
	t.Fatal("no free port between 20000 and 30000")
	return ""
}

// run executes a script and returns its standard output.
func (p *page) run(script string) string {
	p.t.Helper()
	// Exported variables last until the end of the page, as in a terminal.
	cmd := exec.CommandContext(p.t.Context(), "bash", "-c", "if [ -f .exported ]; then . ./.exported; fi\n"+p.withFreePorts(script))
	cmd.Dir, cmd.Env = p.home, p.env
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		p.t.Errorf("%s: %v\n%s%s", script, err, out, errs.String())
	}
	p.t.Logf("%v of processor time: %s", cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), script)
	return p.withPagePorts(string(out))
}

// startAgent runs an agent, at addresses of its own, until the page ends.
func (p *page) startAgent(line string) {
	p.t.Helper()
	for _, listener := range []string{"http", "rpc", "metrics"} {
		line = strings.TrimSpace(line) + " --set listen." + listener + "=127.0.0.1:0"
	}
	cmd := exec.Command("bash", "-c", "exec "+line)
	cmd.Dir, cmd.Env = p.home, p.env
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			p.t.Errorf("%s: %v\n%s", line, err, errs.String())
		}
	})
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		if at := agentAddress.FindStringSubmatch(scanner.Text()); at != nil {
			p.env = append(p.env, "CEDE_ADDR="+at[0])
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return
		}
	}
	p.t.Fatalf("%s: the agent did not become ready\n%s", line, errs.String())
}

// agentAddress is the address in the first line that an agent prints.
var agentAddress = regexp.MustCompile(`https?://127\.0\.0\.1:\d+`)

// stop ends the processes with IDs that the page stored in files named *.pid.
func (p *page) stop() {
	files, _ := filepath.Glob(filepath.Join(p.home, "*.pid"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && p.started(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// started reports whether the process runs in the folder of the page, so that an id
// that was reused in the meantime is left alone.
func (p *page) started(pid int) bool {
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	return err == nil && dir == p.home
}

// abridge cuts the output where the page cuts it.
func abridge(output, shown string) string {
	above, cut := strings.CutSuffix(shown, "…\n")
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
			return fmt.Sprintf("want %sgot  %s", w[i], g[i])
		}
	}
	return "one output is a prefix of the other"
}
