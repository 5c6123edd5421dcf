package operator

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// bundleResult lists the parts of a bundle.
type bundleResult struct {
	File    string
	Parts   []string
	Missing []string `json:",omitempty"` // files that could not be collected, and why
}

func newOperatorDebugCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "debug",
		Short: "Collect a support bundle (secrets redacted)",
		Long: `Collect a support bundle in FILE.tar.gz: version, configuration, members, health,
replication, broker, scheduler settings, recent decisions, and, from the metrics
listener, metrics and profiles of goroutines and memory. With --log the end of a log
file is added.

Secrets are redacted. Job specifications are not collected, because their variables can
hold secrets. Parts that cannot be collected are listed in missing.txt.`,
		Example: "  cede operator debug -w bundle.tar.gz\n  cede operator debug -w bundle.tar.gz --log /var/log/cede.log",
		Args:    cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	out, conn := cmdutil.OutputFlags(cmd, env), cmdutil.ConnectionFlags(cmd, env)
	file := cmd.Flags().StringP("write", "w", "cede-debug.tar.gz", "write to `FILE`")
	metrics := cmd.Flags().String("metrics-addr", "http://127.0.0.1:4649", "`URL` of the metrics listener of the server; empty: skip metrics and profiles")
	shown := cmd.Flags().String("metrics-token", "", "`TOKEN` for the metrics listener if telemetry.token is set, or file:PATH (CEDE_METRICS_TOKEN)")
	log := cmd.Flags().String("log", "", "add the end of the log `FILE`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		if err := env.CheckOutputs([]string{*log}, cmdutil.OutputFile{Flag: "-w", Name: *file}); err != nil {
			return err
		}
		api, err := conn.Dial()
		if err != nil {
			return err
		}
		if _, err := api.Status().Self(cmd.Context()); err != nil {
			return cmdutil.InterruptError(cmd.Context(), err) // without a server there is nothing to collect
		}
		conf, err := conn.ClientConfig()
		if err != nil {
			return err
		}
		measured, err := newMetricsClient(env, conf, *shown)
		if err != nil {
			return err
		}
		b := &debugBundle{env: env, secrets: []string{conf.Token, measured.token}}
		b.server(cmd.Context(), api)
		if *metrics != "" {
			b.process(cmd.Context(), measured, strings.TrimRight(*metrics, "/"))
		}
		if *log != "" {
			b.tail(*log)
		}
		v := b.view(*file)
		if err := env.Write(*file, b.pack); err != nil || *file == cmdutil.Stdin {
			return err
		}
		return out.Show(cmdutil.Document{Data: v, Names: []string{*file}, Page: v.page})
	}
	return cmd
}

// debugBundle collects the parts of a support bundle.
type debugBundle struct {
	env     *cmdutil.Env
	secrets []string // known secrets, which are redacted
	parts   []debugPart
	missing []string
}

type debugPart struct {
	name string
	data []byte
}

// add stores a redacted text. Binary profiles are stored as they are: they contain
// addresses only.
func (b *debugBundle) add(name string, text []byte, err error) {
	if err != nil {
		b.missing = append(b.missing, fmt.Sprintf("%s: %v", name, err))
		return
	}
	if !strings.HasSuffix(name, ".pb.gz") {
		text = redact(text, b.secrets)
	}
	b.parts = append(b.parts, debugPart{name, text})
}

func (b *debugBundle) json(name string, v any, err error) {
	text, bad := json.MarshalIndent(v, "", "  ")
	if err == nil {
		err = bad
	}
	b.add(name, append(text, '\n'), err)
}

// newestDecisions is the maximum number of policy decisions in a bundle.
const newestDecisions = 100

// server collects the responses of the API.
func (b *debugBundle) server(ctx context.Context, api *client.Client) {
	b.json("version.json", b.env.Build, nil)
	self, err := api.Status().Self(ctx)
	b.json("self.json", self, err)
	members, err := api.Status().Members(ctx)
	b.json("members.json", members, err)
	health, err := api.Status().Health(ctx)
	b.json("health.json", health, err)
	raft, err := api.Operator().RaftStatus(ctx)
	b.json("raft.json", raft, err)
	broker, err := api.Operator().BrokerStatus(ctx)
	b.json("broker.json", broker, err)
	scheduler, _, err := api.Scheduler().Get(ctx, nil)
	b.json("scheduler.json", scheduler, err)
	policies, _, err := api.Policies().List(ctx, nil)
	b.json("policies.json", policies, err)
	decisions, _, err := api.Operator().Decisions(ctx, &client.QueryOptions{PerPage: newestDecisions})
	b.json("decisions.json", decisions, err)
}

// Limits of the requests to a metrics listener.
const (
	debugWait = 30 * time.Second
	maxDebug  = 64 << 20
	maxLog    = 4 << 20
)

// process collects the responses of the metrics listener.
func (b *debugBundle) process(ctx context.Context, c *metricsClient, url string) {
	defer c.CloseIdleConnections()
	for _, p := range []struct{ name, path string }{
		{"metrics.txt", "/metrics"}, {"goroutines.txt", "/debug/pprof/goroutine?debug=2"}, {"heap.pb.gz", "/debug/pprof/heap"},
	} {
		text, err := c.fetch(ctx, url+p.path)
		b.add(p.name, text, err)
	}
}

// tail adds the last part of a log.
func (b *debugBundle) tail(name string) {
	r, err := b.env.Open(name)
	if err != nil {
		b.add("log.txt", nil, err)
		return
	}
	defer func() { _ = r.Close() }() // read-only
	last := make([]byte, 0, 2*maxLog)
	part := make([]byte, 64<<10)
	for err == nil {
		var n int
		n, err = r.Read(part)
		if last = append(last, part[:n]...); len(last) > 2*maxLog-len(part) {
			last = append(last[:0], last[len(last)-maxLog:]...)
		}
	}
	if err == io.EOF { //nolint:errorlint // as io.Reader promises it
		err = nil
	}
	b.add("log.txt", last[max(0, len(last)-maxLog):], err)
}

// Patterns of secrets in text: the value after a name that denotes a secret, and
// tokens of cede anywhere.
var (
	secretField = regexp.MustCompile(`(?i)("?[a-z0-9_.-]*(?:secret|token|password|passwd|credential|authorization|encryption|keys?)"?\s*[:=]\s*)("(?:[^"\\]|\\.)*"|[^\s,}\]]+)`)
	secretToken = regexp.MustCompile(`cede_[A-Za-z0-9_-]{20,}`)
	metricName  = regexp.MustCompile(`^cede_[a-z_]+$`) // a token of 43 characters may have this form
)

const redacted = `"<redacted>"`

// redact returns a text without secrets.
func redact(text []byte, known []string) []byte {
	for _, s := range known {
		if s != "" {
			text = bytes.ReplaceAll(text, []byte(s), []byte("<redacted>"))
		}
	}
	text = secretToken.ReplaceAllFunc(text, func(token []byte) []byte {
		if metricName.Match(token) {
			return token
		}
		return []byte("<redacted>")
	})
	return secretField.ReplaceAll(text, []byte("${1}"+redacted))
}

// pack writes the bundle.
func (b *debugBundle) pack(w io.Writer) error {
	zip := gzip.NewWriter(w)
	archive := tar.NewWriter(zip)
	parts := b.parts
	if len(b.missing) > 0 {
		parts = append(parts, debugPart{"missing.txt", redact([]byte(strings.Join(b.missing, "\n")+"\n"), b.secrets)})
	}
	for _, p := range parts {
		h := &tar.Header{Name: "cede-debug/" + p.name, Mode: 0o600, Size: int64(len(p.data)), ModTime: b.env.Clock.Now()}
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		if _, err := archive.Write(p.data); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return zip.Close()
}

func (b *debugBundle) view(file string) *bundleResult {
	v := &bundleResult{File: file, Missing: b.missing}
	for _, p := range b.parts {
		v.Parts = append(v.Parts, p.name)
	}
	return v
}

func (v *bundleResult) page(p cmdutil.Page) {
	p.Printf("%s: %s\n", v.File, strings.Join(v.Parts, ", "))
	for _, m := range v.Missing {
		p.Printf("  missing: %s\n", m)
	}
}
